// The player's front end: a button for each enabled input, one to go back, one for the test, the tree and the picture.
function render({ model, el }) {
  const buttons = document.createElement("div");
  const tree = document.createElement("div");
  const test = document.createElement("pre");
  const picture = document.createElement("div");
  Object.assign(tree.style, { maxHeight: "12em", overflow: "auto", fontFamily: "monospace", fontSize: "12px", whiteSpace: "pre" });
  const chart = document.createElement("div");
  picture.className = "lifefold-picture";
  chart.className = "lifefold-chart";
  picture.style.overflow = "auto";
  Object.assign(chart.style, { maxHeight: "40em", overflow: "auto" });
  let asked = 0;

  function ask(what, number) {
    // The count makes each request a change, also if it repeats the one before.
    asked += 1;
    model.set("asked", [what, number, asked]);
    model.save_changes();
  }

  function button(text, what, number) {
    const made = document.createElement("button");
    made.textContent = text;
    made.onclick = () => ask(what, number);
    return made;
  }

  function show() {
    const shown = model.get("shown");
    const back = button("← back", "back", 0);
    back.disabled = shown.now === 0;
    const written = button("as test", "test", 0);
    buttons.replaceChildren(back, written, ...shown.choices.map((text, number) => button(text, "give", number)));
    tree.replaceChildren(
      ...shown.tree.map((text) => {
        const line = button(text, "at", Number(/(\d+)\./.exec(text)[1]));
        Object.assign(line.style, { display: "block", font: "inherit", whiteSpace: "pre", border: 0, background: "none", cursor: "pointer" });
        return line;
      }),
    );
    test.textContent = shown.test;
    test.hidden = shown.test === "";
    picture.innerHTML = shown.picture;
    chart.innerHTML = shown.chart;
  }

  el.append(buttons, test, tree, picture, chart);
  model.on("change:shown", show);
  show();
}

export default { render };
