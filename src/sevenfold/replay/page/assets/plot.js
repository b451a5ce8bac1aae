/*
 * The context of one session, call by call: an area for what the cache supplied, one on top of it for what
 * was written there or fresh, and marks where the cache broke or the context was cut. To a screen reader and
 * a keyboard it is a slider over the calls; dragging over a part of it zooms in.
 */

const EDGE = { top: 30, right: 10, bottom: 26, left: 48 };
const DRAG_PX = 6; // less is a tap with an unsteady hand
const NEAR_PX = 9; // a mark is easier to point at than it is wide
const HOLD_S = 90; // most calls of a busy agent follow within that
const LEAST = { call: 6, time: 60 }; // calls, seconds: no zooming in beyond that

class ContextPlot {
  constructor() {
    this.wanted = "call";
    this.place = null;
    this.drag = null;
    this.drawing = shape("svg", { "aria-hidden": "true" });
    this.node = el(
      "div",
      {
        class: "plot",
        role: "slider",
        tabindex: "0",
        "aria-orientation": "horizontal",
        "aria-describedby": "plot-keys",
        on: {
          pointerdown: (event) => this.press(event),
          pointermove: (event) => this.move(event),
          pointerup: (event) => this.release(event),
          pointercancel: () => this.letGo(),
          pointerleave: (event) => event.pointerType === "mouse" && !this.drag && this.leave(),
          dblclick: () => this.reset(),
          keydown: (event) => this.key(event),
          blur: () => this.leave(),
        },
      },
      this.drawing,
    );
    this.zoomOut = el("button", { type: "button", on: { click: () => this.reset() } }, "Show all");
    this.axes = choice(
      "Horizontal axis",
      [
        ["call", "By call"],
        ["time", "By time"],
      ],
      this.wanted,
      (axis) => {
        this.wanted = axis;
        this.reset();
      },
    );
    this.tools = el(
      "div",
      { class: "tools" },
      this.axes,
      el(
        "div",
        { class: "zoom", role: "group", "aria-label": "Zoom" },
        el("button", { type: "button", "aria-label": "Zoom in", on: { click: () => this.zoomBy(0.5) } }, "+"),
        el("button", { type: "button", "aria-label": "Zoom out", on: { click: () => this.zoomBy(2) } }, "−"),
        this.zoomOut,
      ),
    );
    new ResizeObserver(() => this.session && this.draw()).observe(this.node);
  }

  show(session, title) {
    this.session = session;
    this.place = null;
    this.marks = collectMarks(session);
    this.hasTimes = session.series.at.every((at) => at !== null) && session.series.at.length > 1;
    this.axes.hidden = !this.hasTimes;
    this.node.setAttribute("aria-label", `Context size of ${title}, call by call`);
    this.node.setAttribute("aria-valuemin", "1");
    this.node.setAttribute("aria-valuemax", String(Math.max(1, session.total.calls)));
    this.reset();
    this.speak(0);
  }

  /* A log without times has only calls. */
  get axis() {
    return this.hasTimes ? this.wanted : "call";
  }

  /* Values along the axis: where each drawn call begins, and where the last one ends. */
  get starts() {
    return this.axis === "call" ? this.session.series.call : this.session.series.at;
  }

  get whole() {
    const starts = this.starts;
    const last = starts.at(-1) ?? 0;
    if (this.axis === "call") return [0, Math.max(this.session.total.calls, last + 1)];
    return [starts[0], last + Math.max(20, (last - starts[0]) * 0.02)];
  }

  reset() {
    this.range = this.whole;
    this.node.dataset.axis = this.axis;
    this.draw();
  }

  zoomTo(low, high) {
    const [first, last] = this.whole;
    const width = Math.min(last - first, Math.max(high - low, LEAST[this.axis]));
    const start = Math.min(Math.max((low + high - width) / 2, first), last - width);
    this.range = [start, start + width];
    this.leave();
    this.draw();
  }

  zoomBy(factor) {
    const [low, high] = this.range;
    const middle = this.place === null ? (low + high) / 2 : this.middle(this.place);
    const half = ((high - low) / 2) * factor;
    this.zoomTo(middle - half, middle + half);
  }

  /* Where a drawn call is pointed at: the middle of its column, or its time. */
  middle(place) {
    return this.axis === "call" ? this.starts[place] + 0.5 : this.starts[place];
  }

  markAt(mark) {
    if (this.axis === "call") return mark.call + 0.5;
    return this.session.series.at[lastAtMost(this.session.series.call, mark.call)];
  }

  draw() {
    const width = this.node.clientWidth;
    if (!width) return;
    const height = width < 560 ? 230 : 300;
    const { series } = this.session;
    this.x = scale(...this.range, EDGE.left, width - EDGE.right);
    this.y = scale(0, Math.max(...series.prompt, 1) * 1.03, height - EDGE.bottom, EDGE.top);
    this.height = height;
    // By time, a call colours the time shortly after it; a long wait is pale, so that idling is seen.
    const hold = this.axis === "call" ? Infinity : Math.max(HOLD_S, (this.range[1] - this.range[0]) / 250);
    this.cursor = shape("g", { class: "cursor" });
    this.selection = shape("rect", {
      class: "selection",
      y: EDGE.top,
      height: height - EDGE.top - EDGE.bottom,
      width: 0,
    });
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.drawing.setAttribute("height", height);
    this.drawing.replaceChildren(
      this.grid(width),
      shape("path", { class: "area-idle", d: this.area(series.prompt) }),
      shape("path", { class: "area-paid", d: this.area(series.prompt, hold) }),
      shape("path", { class: "area-read", d: this.area(series.read, hold) }),
      shape("path", { class: "outline", d: this.outline(series.prompt) }),
      this.bottom(width),
      ...this.visibleMarks().map((mark) => this.drawMark(mark)),
      this.selection,
      this.cursor,
    );
    const [low, high] = this.whole;
    this.zoomOut.disabled = this.range[0] <= low && this.range[1] >= high;
  }

  /* One column a call until the next, at most `hold` wide, cut off at the edges of what is shown. */
  columns(values, hold = Infinity) {
    const starts = this.starts;
    const [low, high] = this.range;
    const found = [];
    for (let place = lastAtMost(starts, low); place < starts.length && starts[place] < high; place += 1) {
      const next = starts[place + 1] ?? this.whole[1];
      const to = Math.min(next, starts[place] + hold, high);
      if (to > low) found.push([Math.max(starts[place], low), to, values[place]]);
    }
    return found.map(([from, to, value]) => [
      this.x(from).toFixed(1),
      this.x(to).toFixed(1),
      this.y(value).toFixed(1),
    ]);
  }

  area(values, hold) {
    const base = this.y(0);
    let path = "";
    let end = null;
    for (const [from, to, y] of this.columns(values, hold)) {
      // Columns that touch are one shape: seams between them would show.
      path += from === end ? `V${y}H${to}` : `${path && `V${base}Z`}M${from},${base}V${y}H${to}`;
      end = to;
    }
    return path && `${path}V${base}Z`;
  }

  outline(values) {
    return this.columns(values)
      .map(([from, to, y], place) => `${place ? "V" : `M${from},`}${y}H${to}`)
      .join("");
  }

  grid(width) {
    const top = this.y.invert(EDGE.top);
    const lines = ticks(0, top, roundStep(top, 4)).map((value) => {
      const y = Math.round(this.y(value)) + 0.5;
      return [
        shape("line", {
          class: value ? "grid" : "floor",
          x1: EDGE.left,
          x2: width - EDGE.right,
          y1: y,
          y2: y,
        }),
        shape(
          "text",
          { class: "tick", x: EDGE.left - 8, y: y + 4, "text-anchor": "end" },
          value ? shortTokens(value) : "0",
        ),
      ];
    });
    return shape("g", {}, lines.flat());
  }

  bottom(width) {
    const wanted = Math.max(3, Math.floor((width - EDGE.left) / 100));
    const labels = this.axis === "call" ? this.callTicks(wanted) : this.timeTicks(wanted);
    const y = this.height - 8;
    return shape(
      "g",
      {},
      labels
        .filter(([, at]) => at < width - EDGE.right - 14)
        .map(([text, at]) =>
          shape(
            "text",
            { class: "tick", x: at, y, "text-anchor": at < EDGE.left + 20 ? "start" : "middle" },
            text,
          ),
        ),
    );
  }

  callTicks(wanted) {
    const [low, high] = this.range;
    const step = Math.max(1, roundStep(high - low, wanted));
    // Calls are counted from 1 where people read them.
    const places = ticks(low, high - 1, step).map((value) => [
      String(Math.max(1, value)),
      this.x(value ? value - 0.5 : 0.5),
    ]);
    return places.map(([text, at], place) => [place ? text : `call ${text}`, Math.max(at, EDGE.left)]);
  }

  timeTicks(wanted) {
    const start = this.session.first_at;
    const { values, step } = timeTicks(start + this.range[0], start + this.range[1], wanted);
    return values.map((value) => [
      step >= 86400 ? day(value).slice(5) : clock(value, step < 60),
      this.x(value - start),
    ]);
  }

  visibleMarks() {
    return this.marks.filter((mark) => {
      const at = this.markAt(mark);
      return at >= this.range[0] && at <= this.range[1];
    });
  }

  drawMark(mark) {
    const x = this.x(this.markAt(mark));
    return shape(
      "g",
      { class: `mark ${mark.kind}` },
      shape("line", { x1: x, x2: x, y1: EDGE.top - 6, y2: this.y(0) }),
      markShape(mark.kind, x, EDGE.top - 13),
    );
  }

  /* The drawn call under a place of the window, or the one that a mark nearby belongs to. */
  placeAt(clientX) {
    const pixel = clientX - this.drawing.getBoundingClientRect().left;
    const near = this.visibleMarks()
      .map((mark) => ({ mark, far: Math.abs(this.x(this.markAt(mark)) - pixel) }))
      .filter(({ far }) => far <= NEAR_PX)
      .sort((one, other) => one.far - other.far)[0];
    const { series } = this.session;
    return near ? lastAtMost(series.call, near.mark.call) : lastAtMost(this.starts, this.x.invert(pixel));
  }

  point(place, clientY) {
    if (!this.session.series.call.length) return;
    this.place = place;
    const x = this.x(this.middle(place));
    const y = this.y(this.session.series.prompt[place]);
    this.cursor.replaceChildren(
      shape("line", { x1: x, x2: x, y1: EDGE.top, y2: this.y(0) }),
      shape("circle", { cx: x, cy: y, r: 4 }),
    );
    const box = this.drawing.getBoundingClientRect();
    showTip(box.left + x, clientY ?? box.top + y, ...this.describe(place));
    this.speak(place);
  }

  leave() {
    this.cursor?.replaceChildren();
    hideTip();
  }

  marksOf(place) {
    const calls = this.session.series.call;
    const next = calls[place + 1] ?? Infinity;
    return this.marks.filter((mark) => mark.call >= calls[place] && mark.call < next);
  }

  describe(place) {
    const { series, first_at: start } = this.session;
    const [whole, read] = [series.prompt[place], series.read[place]];
    const when = series.at[place] === null || start === null ? "" : ` · ${moment(start + series.at[place])}`;
    return [
      tipTitle(`Call ${grouped(series.call[place] + 1)}${when}`),
      tipRows([
        ["Context", `${tokens(whole)} tokens`],
        ["From the cache", `${tokens(read)}, ${share(read, whole)}`],
        ["Written or fresh", tokens(Math.max(0, whole - read))],
      ]),
      ...this.marksOf(place)
        .flatMap((mark) => mark.lines)
        .map(([kind, text]) => el("p", { class: "tip-mark" }, markIcon(kind), el("span", {}, text))),
    ];
  }

  speak(place) {
    const { series } = this.session;
    if (!series.call.length) return;
    const said = [
      `call ${series.call[place] + 1}`,
      `context ${tokens(series.prompt[place])} tokens`,
      `${share(series.read[place], series.prompt[place])} from the cache`,
      ...this.marksOf(place).flatMap((mark) => mark.lines.map(([, text]) => text)),
    ];
    this.node.setAttribute("aria-valuenow", String(series.call[place] + 1));
    this.node.setAttribute("aria-valuetext", said.join(", "));
  }

  /* From elsewhere on the page: this call, please. */
  goTo(call) {
    this.reset();
    this.node.focus({ preventScroll: true });
    if (call !== null) this.point(lastAtMost(this.session.series.call, call));
  }

  press(event) {
    if (event.button) return;
    this.drag = { start: event.clientX, isWide: false };
    this.node.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (this.drag && Math.abs(event.clientX - this.drag.start) > DRAG_PX) this.drag.isWide = true;
    if (this.drag?.isWide) {
      this.stretch(event.clientX);
    } else if (event.pointerType === "mouse" || !this.drag) {
      this.point(this.placeAt(event.clientX), event.clientY);
    }
  }

  /* The two ends of a drag, in values of the axis. */
  dragged(clientX) {
    const box = this.drawing.getBoundingClientRect();
    const inside = (pixel) => Math.min(Math.max(pixel - box.left, EDGE.left), box.width - EDGE.right);
    return [inside(this.drag.start), inside(clientX)].sort((one, other) => one - other);
  }

  stretch(clientX) {
    const [from, to] = this.dragged(clientX);
    this.leave();
    this.selection.setAttribute("x", from);
    this.selection.setAttribute("width", to - from);
  }

  release(event) {
    const drag = this.drag;
    if (!drag) return;
    if (drag.isWide) {
      const [from, to] = this.dragged(event.clientX);
      this.zoomTo(this.x.invert(from), this.x.invert(to));
    } else {
      this.point(this.placeAt(event.clientX), event.clientY);
    }
    this.letGo();
  }

  letGo() {
    this.drag = null;
    this.selection.setAttribute("width", 0);
  }

  key(event) {
    const last = this.session.series.call.length - 1;
    const place = this.place ?? -1;
    const moves = {
      ArrowRight: () => place + 1,
      ArrowUp: () => place + 1,
      ArrowLeft: () => place - 1,
      ArrowDown: () => place - 1,
      Home: () => 0,
      End: () => last,
      PageDown: () => this.nextMark(1),
      PageUp: () => this.nextMark(-1),
    };
    const acts = {
      "+": () => this.zoomBy(0.5),
      "=": () => this.zoomBy(0.5),
      "-": () => this.zoomBy(2),
      Escape: () => this.reset(),
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[event.key]) {
      this.walk(Math.min(last, Math.max(0, moves[event.key]())));
    } else if (acts[event.key]) {
      acts[event.key]();
    } else {
      return;
    }
    event.preventDefault();
  }

  /* The cursor takes what is shown along with it. */
  walk(place) {
    const [low, high] = this.range;
    const at = this.middle(place);
    if (at < low || at > high) this.zoomTo(at - (high - low) / 2, at + (high - low) / 2);
    this.point(place);
  }

  nextMark(step) {
    const places = this.marks.map((mark) => lastAtMost(this.session.series.call, mark.call));
    const here = this.place ?? -1;
    const found = step > 0 ? places.find((place) => place > here) : places.findLast((place) => place < here);
    return found ?? this.place ?? 0;
  }
}
