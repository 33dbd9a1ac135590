// Loads XState configurations from standard input and takes walks through them; prints where each step leads.
//
// In:  [{ machine: <configuration>, walks: [[{ type, delay?, guards: { name: boolean } }]] }]
// Out: [[[<id of the state after the step>, or null if the step was not taken]]]

import { readFileSync } from "node:fs";
import { createMachine, fromCallback, initialTransition, transition } from "xstate";

const nothing = fromCallback(() => {});
const always = (value) => new Proxy({}, { get: () => value, has: () => true });

// What a machine of ours decides, the test has decided beforehand: each event brings the answers of the guards with it.
const implementations = {
  guards: new Proxy({}, { get: (_, name) => ({ event }) => event.guards[name], has: () => true }),
  actions: always(() => {}),
  actors: always(nothing),
  delays: always(1_000),
};

const leaf = (snapshot) => snapshot._nodes.find((node) => node.type === "atomic" || node.type === "final");

const typeOf = (snapshot, step) => {
  const timers = snapshot._nodes.flatMap((node) => node.after);
  return timers.find((timer) => String(timer.delay) === step.delay)?.eventType ?? step.type;
};

const walk = (machine, steps) => {
  let [snapshot] = initialTransition(machine);
  return steps.map((step) => {
    const event = { ...step, type: typeOf(snapshot, step) };
    const taken = snapshot.status === "active" && machine.getTransitionData(snapshot, event).length > 0;
    if (taken) [snapshot] = transition(machine, snapshot, event);
    return taken ? leaf(snapshot).id : null;
  });
};

const given = JSON.parse(readFileSync(0, "utf8"));
const answers = given.map(({ machine, walks }) => {
  const loaded = createMachine(machine, implementations);
  return walks.map((steps) => walk(loaded, steps));
});
process.stdout.write(JSON.stringify(answers));
