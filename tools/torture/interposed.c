/* A library that is preloaded into a program of a test: it records and disturbs what the program does to a folder, and
 * records the signals that the program sends.
 *
 * TORTURE_UNDER    the folder, an absolute path; files elsewhere are neither recorded nor disturbed
 * TORTURE_RECORD   the file that gets a record of each operation on the folder (see recording.py)
 * TORTURE_SWITCH   a file of three 32-bit integers: the fault, its milliseconds, and the number of disturbed calls
 * TORTURE_SIGNALS  the file that gets a line for each signal, and for each program that begins (see signals.py)
 *
 * One mutex orders the operations of all threads, so the order of the records is the order of the operations.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { OPENED = 1, CLOSED, WRITTEN, TRUNCATED, SYNCED, UNLINKED, RENAMED };
enum { SOUND, FULL, READ_ONLY, GONE, SLOW, UNSYNCED };
enum { DESCRIPTORS = 4096, NAME_BYTES = 4096 };

struct record { uint8_t op, unused[3]; int32_t fd; int64_t first, second; uint32_t name_bytes, data_bytes; };
struct fault { int32_t kind, milliseconds, disturbed; };

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char under[NAME_BYTES];
static size_t under_bytes;
static int record_fd = -1, signals_fd = -1;
static volatile struct fault *fault;
static char watched[DESCRIPTORS];


static int apart(const char *path) { /* a descriptor that programs neither get nor close by accident */
    int low = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (low < 0) return -1;
    int high = fcntl(low, F_DUPFD_CLOEXEC, 900);
    syscall(SYS_close, low);
    return high;
}

static void describe(pid_t pid, char *text, size_t bytes) { /* state, parent, group and start time of a process */
    char path[64], stat[1024];
    snprintf(text, bytes, "- 0 0 0");
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t got = syscall(SYS_read, fd, stat, sizeof stat - 1);
    syscall(SYS_close, fd);
    if (got <= 0) return;
    stat[got] = 0;
    char state, *rest = strrchr(stat, ')');
    int parent, group;
    unsigned long long start;
    if (rest && sscanf(rest + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                       &state, &parent, &group, &start) == 4)
        snprintf(text, bytes, "%c %d %d %llu", state, parent, group, start);
}

static void command(char *text, size_t bytes) { /* the words of this program, joined */
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : syscall(SYS_read, fd, text, bytes - 1);
    if (fd >= 0) syscall(SYS_close, fd);
    if (got < 0) got = 0;
    text[got] = 0;
    for (ssize_t i = 0; i < got; i++)
        if (text[i] <= ' ') text[i] = i + 1 < got ? '+' : 0;
}

static void note(const char *how, pid_t target, int number, const char *before, long answer, const char *words) {
    char line[1024];
    if (signals_fd < 0) return;
    int bytes = snprintf(line, sizeof line, "%s %d %d %d %ld %s %s\n", how, (int)getpid(), (int)target, number, answer,
                         before, words);
    syscall(SYS_write, signals_fd, line, (size_t)bytes);
}

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("TORTURE_UNDER");
    if (name) under_bytes = (size_t)snprintf(under, sizeof under, "%s/", name);
    if ((name = getenv("TORTURE_RECORD")) && *name) record_fd = apart(name);
    if ((name = getenv("TORTURE_SIGNALS")) && *name) {
        char self[256], words[512];
        signals_fd = apart(name);
        describe(getpid(), self, sizeof self);
        command(words, sizeof words);
        note("begin", getpid(), 0, self, 0, words);
    }
    if ((name = getenv("TORTURE_SWITCH")) && *name) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC);
        if (fd >= 0) {
            void *shared = mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (shared != MAP_FAILED) fault = shared;
            syscall(SYS_close, fd);
        }
    }
}

static int is_under(const char *path) { /* the folder itself counts: its names are made durable through it */
    return under_bytes && path &&
           (!strncmp(path, under, under_bytes) || (!strncmp(path, under, under_bytes - 1) && !path[under_bytes - 1]));
}

static int is_watched(int fd) { return fd >= 0 && fd < DESCRIPTORS && watched[fd]; }

static void put(int op, int fd, int64_t first, int64_t second, const char *name, const void *data, size_t data_bytes) {
    if (record_fd < 0) return;
    size_t name_bytes = name ? strlen(name) : 0;
    struct record head = {(uint8_t)op, {0}, fd, first, second, (uint32_t)name_bytes, (uint32_t)data_bytes};
    size_t all = sizeof head + name_bytes + data_bytes;
    char *whole = malloc(all);
    memcpy(whole, &head, sizeof head);
    if (name_bytes) memcpy(whole + sizeof head, name, name_bytes);
    if (data_bytes) memcpy(whole + sizeof head + name_bytes, data, data_bytes);
    if (syscall(SYS_write, record_fd, whole, all) != (long)all) abort();
    free(whole);
}

static int disturbed(int error) {
    fault->disturbed++;
    errno = error;
    return 1;
}

static void linger(void) { /* one flush waits, and with it the program; the later ones are quick */
    struct timespec pause = {fault->milliseconds / 1000, (fault->milliseconds % 1000) * 1000000L};
    fault->kind = SOUND;
    fault->disturbed++;
    nanosleep(&pause, NULL);
}

static int refuses_write(void) {
    switch (fault ? fault->kind : SOUND) {
    case FULL: return disturbed(ENOSPC);
    case READ_ONLY: return disturbed(EROFS);
    case GONE: return disturbed(EIO);
    default: return 0;
    }
}

static int refuses_sync(void) {
    switch (fault ? fault->kind : SOUND) {
    case GONE: case UNSYNCED: return disturbed(EIO);
    case SLOW: linger(); return 0;
    default: return 0;
    }
}

static int refuses_read(void) { return fault && fault->kind == GONE && disturbed(EIO); }

static int refuses_open(const char *path, int flags) {
    switch (fault ? fault->kind : SOUND) {
    case FULL: return (flags & O_CREAT) && access(path, F_OK) && disturbed(ENOSPC);
    case READ_ONLY: return (flags & (O_WRONLY | O_RDWR)) && disturbed(EROFS);
    case GONE: return disturbed(EIO);
    default: return 0;
    }
}

static int refuses_name(void) {
    switch (fault ? fault->kind : SOUND) {
    case READ_ONLY: return disturbed(EROFS);
    case GONE: return disturbed(EIO);
    default: return 0;
    }
}

static int open_as(const char *path, int flags, mode_t mode) {
    int counts = is_under(path) && (flags & O_TMPFILE) != O_TMPFILE;
    if (!counts) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (refuses_open(path, flags)) return -1;
    pthread_mutex_lock(&turn);
    int existed = !access(path, F_OK);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && fd < DESCRIPTORS) {
        watched[fd] = 1;
        put(OPENED, fd, flags, existed, path, NULL, 0);
    }
    pthread_mutex_unlock(&turn);
    return fd;
}

static mode_t mode_of(int flags, va_list rest) {
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

#define OPENING(name, first, before)                  \
    int name first {                                  \
        va_list rest;                                 \
        va_start(rest, flags);                        \
        mode_t mode = mode_of(flags, rest);           \
        va_end(rest);                                 \
        before;                                       \
        return open_as(path, flags, mode);            \
    }
#define AT if (folder != AT_FDCWD && *path != '/') return (int)syscall(SYS_openat, folder, path, flags, mode)

OPENING(open, (const char *path, int flags, ...), )
OPENING(open64, (const char *path, int flags, ...), )
OPENING(openat, (int folder, const char *path, int flags, ...), AT)
OPENING(openat64, (int folder, const char *path, int flags, ...), AT)

int close(int fd) {
    if (fd >= 900 && (fd == record_fd || fd == signals_fd)) return 0;
    if (!is_watched(fd)) return (int)syscall(SYS_close, fd);
    pthread_mutex_lock(&turn);
    watched[fd] = 0;
    put(CLOSED, fd, 0, 0, NULL, NULL, 0);
    int answer = (int)syscall(SYS_close, fd);
    pthread_mutex_unlock(&turn);
    return answer;
}

static ssize_t write_at(int fd, const void *data, size_t bytes, off_t place, int positioned) {
    if (refuses_write()) return -1;
    pthread_mutex_lock(&turn);
    struct stat found;
    if (!positioned) {
        int appends = fcntl(fd, F_GETFL) & O_APPEND;
        place = appends && !fstat(fd, &found) ? found.st_size : lseek(fd, 0, SEEK_CUR);
    }
    ssize_t wrote = positioned ? syscall(SYS_pwrite64, fd, data, bytes, place) : syscall(SYS_write, fd, data, bytes);
    if (wrote > 0) put(WRITTEN, fd, place, 0, NULL, data, (size_t)wrote);
    pthread_mutex_unlock(&turn);
    return wrote;
}

ssize_t write(int fd, const void *data, size_t bytes) {
    return is_watched(fd) ? write_at(fd, data, bytes, 0, 0) : syscall(SYS_write, fd, data, bytes);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t place) {
    return is_watched(fd) ? write_at(fd, data, bytes, place, 1) : syscall(SYS_pwrite64, fd, data, bytes, place);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t place) { return pwrite64(fd, data, bytes, place); }

ssize_t read(int fd, void *data, size_t bytes) {
    return is_watched(fd) && refuses_read() ? -1 : syscall(SYS_read, fd, data, bytes);
}

ssize_t pread64(int fd, void *data, size_t bytes, off_t place) {
    return is_watched(fd) && refuses_read() ? -1 : syscall(SYS_pread64, fd, data, bytes, place);
}

ssize_t pread(int fd, void *data, size_t bytes, off_t place) { return pread64(fd, data, bytes, place); }

ssize_t sendfile64(int to, int from, off_t *place, size_t bytes) {
    if (is_watched(to) || is_watched(from)) { errno = EINVAL; return -1; } /* callers then read and write */
    return syscall(SYS_sendfile, to, from, place, bytes);
}

ssize_t sendfile(int to, int from, off_t *place, size_t bytes) { return sendfile64(to, from, place, bytes); }

int ftruncate64(int fd, off_t bytes) {
    if (!is_watched(fd)) return (int)syscall(SYS_ftruncate, fd, bytes);
    if (refuses_write()) return -1;
    pthread_mutex_lock(&turn);
    int answer = (int)syscall(SYS_ftruncate, fd, bytes);
    if (!answer) put(TRUNCATED, fd, bytes, 0, NULL, NULL, 0);
    pthread_mutex_unlock(&turn);
    return answer;
}

int ftruncate(int fd, off_t bytes) { return ftruncate64(fd, bytes); }

int truncate64(const char *path, off_t bytes) {
    if (!is_under(path)) return (int)syscall(SYS_truncate, path, bytes);
    int fd = open_as(path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int answer = ftruncate64(fd, bytes);
    close(fd);
    return answer;
}

int truncate(const char *path, off_t bytes) { return truncate64(path, bytes); }

static int sync_by(long number, int fd) {
    if (!is_watched(fd)) return (int)syscall(number, fd);
    if (refuses_sync()) {
        int error = errno;
        pthread_mutex_lock(&turn);
        put(SYNCED, fd, -1, 0, NULL, NULL, 0);
        pthread_mutex_unlock(&turn);
        errno = error;
        return -1;
    }
    pthread_mutex_lock(&turn); /* the records are the disk of the test; a real flush would only take time */
    put(SYNCED, fd, 0, 0, NULL, NULL, 0);
    pthread_mutex_unlock(&turn);
    return record_fd < 0 ? (int)syscall(number, fd) : 0;
}

int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }

int unlink(const char *path) {
    if (!is_under(path)) return (int)syscall(SYS_unlink, path);
    if (refuses_name()) return -1;
    pthread_mutex_lock(&turn);
    int answer = (int)syscall(SYS_unlink, path);
    if (!answer) put(UNLINKED, -1, 0, 0, path, NULL, 0);
    pthread_mutex_unlock(&turn);
    return answer;
}

int rename(const char *from, const char *to) {
    if (!is_under(from) && !is_under(to)) return (int)syscall(SYS_rename, from, to);
    if (refuses_name()) return -1;
    pthread_mutex_lock(&turn);
    int answer = (int)syscall(SYS_rename, from, to);
    if (!answer) put(RENAMED, -1, 0, 0, from, to, strlen(to));
    pthread_mutex_unlock(&turn);
    return answer;
}

static int tell(const char *path, struct statvfs *found, int answer) {
    if (answer || !is_under(path) || !fault) return answer;
    if (fault->kind == FULL) found->f_bavail = 0;
    if (fault->kind == READ_ONLY) found->f_flag |= ST_RDONLY;
    return fault->kind == GONE && disturbed(EIO) ? -1 : 0;
}

int statvfs(const char *path, struct statvfs *found) {
    int (*real)(const char *, struct statvfs *) = (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
    return tell(path, found, real(path, found));
}

int statvfs64(const char *path, struct statvfs64 *found) { return statvfs(path, (struct statvfs *)found); }

/* -- signals: the state of the target is noted before the signal is sent */

int kill(pid_t pid, int number) {
    char before[256];
    describe(pid < -1 ? -pid : pid, before, sizeof before);
    int answer = (int)syscall(SYS_kill, pid, number), error = errno;
    if (number) note(pid < -1 ? "group" : "pid", pid < -1 ? -pid : pid, number, before, answer, "");
    errno = error;
    return answer;
}

static void lead(pid_t pid) { /* a leader is known before it leads: a kill can end it before its program begins */
    char before[256];
    describe(pid, before, sizeof before);
    note("begin", pid, 0, before, 0, "");
}

pid_t setsid(void) {
    lead(getpid());
    return (pid_t)syscall(SYS_setsid);
}

int setpgid(pid_t pid, pid_t group) {
    pid_t of = pid ? pid : getpid();
    if (group == 0 || group == of) lead(of);
    return (int)syscall(SYS_setpgid, pid, group);
}

int killpg(pid_t group, int number) { return kill(-group, number); }

static pid_t pid_behind(int pidfd) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t got = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    text[got > 0 ? got : 0] = 0;
    const char *line = strstr(text, "\nPid:");
    return line ? atoi(line + 5) : 0;
}

long syscall(long number, ...) {
    static long (*real)(long, ...);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    long given[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++) given[i] = va_arg(rest, long);
    va_end(rest);
    if (number != SYS_pidfd_send_signal || signals_fd < 0)
        return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    char before[256];
    pid_t pid = pid_behind((int)given[0]);
    describe(pid, before, sizeof before);
    long answer = real(number, given[0], given[1], given[2], given[3]);
    int error = errno;
    if (given[1]) note(given[3] ? "pidfd-group" : "pidfd", pid, (int)given[1], before, answer, "");
    errno = error;
    return answer;
}
