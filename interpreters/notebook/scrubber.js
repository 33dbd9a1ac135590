// The scrubber's front end: a slider over stops, the list of them, and the diagram in which the present state is marked.
function render({ model, el }) {
  const stops = model.get("stops");
  const picture = document.createElement("div");
  picture.style.overflow = "auto";
  picture.innerHTML = model.get("picture");
  const slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: stops.length - 1, step: 1 });
  slider.style.width = "100%";
  slider.setAttribute("aria-label", "moment");
  const list = document.createElement("div");
  Object.assign(list.style, { maxHeight: "12em", overflow: "auto", fontFamily: "monospace", fontSize: "12px", whiteSpace: "pre" });
  const lines = stops.map((stop, number) => {
    const line = document.createElement("div");
    line.textContent = stop.line;
    line.style.cursor = "pointer";
    line.onclick = () => go(number);
    return list.appendChild(line);
  });
  const boxes = [...picture.querySelectorAll("g.box")];
  const shapes = boxes.map((box) => box.querySelector("rect, circle"));
  const plain = shapes.map((shape) => [shape.getAttribute("fill"), shape.getAttribute("stroke")]);

  function show() {
    const now = model.get("now");
    slider.value = now;
    boxes.forEach((box, number) => {
      const here = box.dataset.key === stops[now].state;
      shapes[number].setAttribute("fill", here ? "#fff3c4" : plain[number][0]);
      shapes[number].setAttribute("stroke", here ? "#b7791f" : plain[number][1]);
      shapes[number].setAttribute("stroke-width", here ? "2.5" : "1");
    });
    lines.forEach((line, number) => {
      line.style.background = number === now ? "#fff3c4" : "";
      line.style.color = number === now ? "#24324a" : "";
    });
    const line = lines[now];
    if (line.offsetTop < list.scrollTop || line.offsetTop + line.offsetHeight > list.scrollTop + list.clientHeight) {
      list.scrollTop = line.offsetTop - list.clientHeight / 2;
    }
  }

  function go(number) {
    model.set("now", number);
    model.save_changes();
    show();
  }

  slider.oninput = () => go(Number(slider.value));
  list.style.position = "relative";
  el.append(slider, list, picture);
  model.on("change:now", show);
  show();
}

export default { render };
