// The script of the desk: keeps pages up to date by the stream, sends commands, moves the scrubber, counts ages.
// Pages can be read without it; commands need it, because no form of another site may send one.
"use strict";
const PAUSE_MS = 400; // between two looks at a page whose fleet writes all the time
const RETRY_MS = 1000;
const body = document.body;
const LOOK_MS = Number(body.dataset.look || 10000); // between two looks at processes and outputs, which no event tells of
const said = document.getElementById("said");
let [isStale, isLoading] = [false, false];

function tell(words, isRefusal) {
  said.textContent = words;
  said.className = isRefusal ? "refused" : "";
}

async function pageAt(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// What an operator has done to the page is kept: open details, scrolled parts, and a text that is being typed.
function isBusy() {
  const active = document.activeElement;
  return Boolean(active && active.matches("main input, main textarea") && active.value !== active.defaultValue);
}

// What the focused part is known by in the next version of the page: its form, its kind, and its target or words.
function markOf(part) {
  const form = part.closest("form[data-command]");
  const words = part.id || part.getAttribute("href") || part.name || part.getAttribute("aria-label") || part.textContent;
  return [form ? form.dataset.command : "", part.tagName, words].join("\n");
}

function alike(main, part) {
  return [...main.querySelectorAll("a, button, input, textarea, select, summary, [tabindex]")].filter((each) => markOf(each) === markOf(part));
}

function replaceMain(fresh) {
  const old = document.getElementById("main");
  const main = document.importNode(fresh.getElementById("main"), true);
  const places = [...old.querySelectorAll("[id]")].map((part) => [part.id, part.scrollTop, part.scrollLeft]);
  for (const kept of old.querySelectorAll("details[id]")) {
    const now = main.querySelector(`#${CSS.escape(kept.id)}`);
    if (now === null) continue;
    now.open = kept.open;
    if (kept.dataset.loaded && kept.dataset.version === now.dataset.version) now.replaceWith(kept);
  }
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const place = focused ? alike(old, focused).indexOf(focused) : 0;
  old.replaceWith(main);
  for (const [id, top, left] of places) {
    const part = document.getElementById(id);
    if (part !== null && (top || left)) part.scrollTo(left, top);
  }
  if (focused) {
    const found = alike(main, focused);
    (found[place] || found[0] || main).focus({ preventScroll: true });
  }
  follow(main);
}

async function refresh() {
  isStale = true;
  if (isLoading) return;
  isLoading = true;
  while (isStale) {
    isStale = false;
    if (isBusy()) isStale = true;
    else {
      try {
        const fresh = await pageAt(location.href);
        if (isBusy()) isStale = true;
        else {
          const header = document.querySelector("header");
          if (!header.contains(document.activeElement)) header.replaceWith(document.importNode(fresh.querySelector("header"), true));
          replaceMain(fresh);
          document.title = fresh.title;
        }
      } catch {
        isStale = true;
      }
    }
    await new Promise((done) => setTimeout(done, isStale ? RETRY_MS : PAUSE_MS));
  }
  isLoading = false;
}

function listen() {
  const fleet = body.dataset.fleet ? `?fleet=${encodeURIComponent(body.dataset.fleet)}&after=${body.dataset.seq}` : "";
  const events = new EventSource(`/events${fleet}`);
  for (const name of ["entries", "runner", "gone"]) events.addEventListener(name, refresh);
  setInterval(() => document.hidden || body.classList.contains("lost") || refresh(), LOOK_MS);
  events.addEventListener("open", () => body.classList.remove("lost"));
  events.addEventListener("error", () => body.classList.add("lost"));
}

async function send(form) {
  const command = JSON.parse(form.dataset.command);
  for (const [name, given] of new FormData(form)) {
    const value = given.replaceAll("\r\n", "\n");
    const field = form.elements[name];
    const { dataset } = field;
    if (value === "" || ("changed" in form.dataset && field.value === field.defaultValue)) continue;
    if ("fields" in dataset) Object.assign(command, JSON.parse(value));
    else if (field.type === "number") command[name] = Number(value);
    else command[name] = "lines" in dataset ? value.split("\n").map((line) => line.trim()).filter(Boolean) : value;
  }
  form.dataset.key ||= Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const headers = { "Content-Type": "application/json", "X-Lifefold": "desk", "Idempotency-Key": form.dataset.key };
  form.querySelector("button").disabled = true;
  try {
    const answer = await fetch(form.action, { method: "POST", headers, body: JSON.stringify(command), credentials: "same-origin" });
    const given = await answer.json();
    const words = [...(given.lines || []).map((line) => line.words), ...(given.notes || []), given.refusal, given.error].filter(Boolean);
    tell(words.join("\n"), !answer.ok);
    delete form.dataset.key;
    if (answer.ok) form.reset();
  } catch {
    tell("the desk does not answer; the same button tries the same command again", true);
  }
  form.querySelector("button").disabled = false;
  form.querySelector("button").focus({ preventScroll: true });
  refresh();
}

async function load(details) {
  if (!details.open || !details.dataset.src || details.dataset.loaded) return;
  details.dataset.loaded = "yes";
  let fresh;
  try {
    fresh = await pageAt(details.dataset.src);
  } catch {
    delete details.dataset.loaded; // the link within stays, and the part is asked for when it is opened again
    return;
  }
  details.querySelector("div").replaceChildren(document.importNode(fresh.getElementById("part") || fresh.getElementById("main"), true));
}

function follow(part) {
  for (const details of part.querySelectorAll("details[data-src]")) details.addEventListener("toggle", () => load(details));
}

document.addEventListener("submit", (event) => {
  if (!event.target.dataset.command) return;
  event.preventDefault();
  send(event.target);
});

document.addEventListener("input", (event) => {
  const form = event.target.closest("[data-scrubber]");
  if (form) form.querySelector("output").value = event.target.value;
});

document.addEventListener("change", (event) => {
  const form = event.target.closest("[data-scrubber]");
  if (form === null) return;
  const address = new URL(location.href);
  address.searchParams.set("at", event.target.value);
  location.assign(address);
});

// The arrow keys step through a trace, unless a part of the page has them already.
document.addEventListener("keydown", (event) => {
  const isFree = !event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey && !event.target.closest("input, textarea, select, pre, .wide");
  const link = isFree && document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
  if (link) link.click();
});

function age(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const of = (unit, most) => String(Math.floor(s / unit) % most).padStart(2, "0");
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${of(1, 60)}s`;
  return s < 86400 ? `${Math.floor(s / 3600)}h${of(60, 60)}m` : `${Math.floor(s / 86400)}d`;
}

function tick() {
  for (const each of document.querySelectorAll("time[data-since]")) each.textContent = age(Date.now() - Number(each.dataset.since));
}

follow(document);
if (body.hasAttribute("data-live")) listen();
if (body.hasAttribute("data-live")) setInterval(tick, 1000);
