// Pointer, wheel, keys, print.

class Controls {
  constructor(app) {
    this.app = app;
    this.drag = null;
  }

  connect() {
    const { app } = this;
    const find = (id) => document.getElementById(id);
    app.scroll.addEventListener("scroll", () => app.redraw());
    app.scroll.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    app.lanes.addEventListener("pointerdown", (event) => this.press(event));
    app.lanes.addEventListener("pointermove", (event) => this.move(event));
    app.lanes.addEventListener("pointerup", (event) => this.release(event));
    app.lanes.addEventListener("pointerleave", () => app.panels.show_tip(null));
    app.lanes.addEventListener("dblclick", (event) => this.zoom_to_shape(event));
    find("ruler").addEventListener("click", (event) => this.click_flag(event));
    this.connect_overview(find("overview"));
    find("query").addEventListener("input", (event) => app.search(event.target.value));
    find("query").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(app.view.next_match(event.shiftKey ? -1 : 1));
      if (event.key === "Escape") this.let_go();
    });
    find("next-match").addEventListener("click", () => this.step(app.view.next_match(1)));
    find("previous-match").addEventListener("click", () => this.step(app.view.next_match(-1)));
    find("by-order").addEventListener("click", () => app.set_axis("order"));
    find("by-time").addEventListener("click", () => app.set_axis("time"));
    find("by-time").disabled = !app.picture.document.has_time;
    find("fit").addEventListener("click", () => this.fit());
    find("theme").addEventListener("click", () => this.other_theme());
    find("help").addEventListener("click", () => { find("keys").hidden = !find("keys").hidden; });
    addEventListener("hashchange", () => app.read_hash());  // a link into this page was followed
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("beforeprint", () => this.before_print());
    addEventListener("afterprint", () => this.after_print());
  }

  connect_overview(strip) {
    const { app } = this;
    const center = (event) => {
      const half = (app.view.stop - app.view.start) / 2;
      const place = app.overview.place_at(event.offsetX);
      app.view.set_range(place - half, place + half);
      app.redraw();
    };
    strip.addEventListener("pointerdown", (event) => {
      strip.setPointerCapture(event.pointerId);
      center(event);
    });
    strip.addEventListener("pointermove", (event) => { if (event.buttons === 1) center(event); });
  }

  // The wheel scrolls lanes; with Ctrl (or two fingers that pinch) it zooms, with Shift it moves.
  wheel(event) {
    const { app } = this;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      app.view.zoom(Math.exp(Math.max(Math.min(event.deltaY, 120), -120) * 0.004), event.offsetX);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      app.view.pan(sideways / app.view.width);
    } else {
      return;
    }
    event.preventDefault();
    app.redraw();
  }

  press(event) {
    if (event.button !== 0) return;
    this.app.lanes.setPointerCapture(event.pointerId);
    this.drag = { x: event.offsetX, y: event.clientY, top: this.app.scroll.scrollTop,
                  start: this.app.view.start, stop: this.app.view.stop, has_moved: false };
  }

  move(event) {
    const { app, drag } = this;
    if (!drag) {
      const shape = app.painter.shape_at(event.offsetX, event.offsetY);
      app.lanes.style.cursor = shape ? "pointer" : "default";
      app.panels.show_tip(shape, event.clientX, event.clientY);
      return;
    }
    const by = event.offsetX - drag.x;
    if (Math.abs(by) + Math.abs(event.clientY - drag.y) < 4 && !drag.has_moved) return;
    drag.has_moved = true;
    app.panels.show_tip(null);
    const places = (by / (app.view.width - kGutter)) * (drag.stop - drag.start);
    app.view.set_range(drag.start - places, drag.stop - places);
    app.scroll.scrollTop = drag.top - (event.clientY - drag.y);
    app.redraw();
  }

  release(event) {
    const { app, drag } = this;
    this.drag = null;
    if (!drag || drag.has_moved) return;
    const shape = app.painter.shape_at(event.offsetX, event.offsetY);
    if (shape && shape.fold !== undefined) {
      toggle(app.view.folded, shape.fold);
      app.view.lay_out();
      app.redraw();
    } else {
      app.select(shape ? shape.event : -1);
    }
  }

  zoom_to_shape(event) {
    const { app } = this;
    const shape = app.painter.shape_at(event.offsetX, event.offsetY);
    if (!shape || shape.bar === undefined || shape.bar < 0) return;
    const [begin, end] = [app.view.begin_of(shape.bar), app.view.end_of(shape.bar)];
    const margin = (end - begin) * 0.06;
    app.view.set_range(begin - margin, end + margin);
    app.redraw();
  }

  click_flag(event) {
    const flag = this.app.painter.flags.find((one) => event.offsetX >= one.x0 && event.offsetX <= one.x1);
    if (flag) this.app.jump_to(flag.event);
  }

  step(event) {
    if (event >= 0) this.app.jump_to(event);
  }

  fit() {
    this.app.view.fit();
    this.app.redraw();
  }

  other_theme() {
    this.app.set_theme(this.app.theme.name === "dark" ? "light" : "dark");
  }

  let_go() {
    const { app } = this;
    const query = document.getElementById("query");
    document.getElementById("keys").hidden = true;
    if (app.view.selected >= 0) return app.select(-1);
    query.value = "";
    query.blur();
    app.search("");
  }

  key(event) {
    const { app } = this;
    if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const zoom = (factor) => { app.view.zoom(factor); app.redraw(); };
    const pan = (share) => { app.view.pan(share); app.redraw(); };
    const actions = {
      w: () => zoom(0.75), "+": () => zoom(0.75), "=": () => zoom(0.75),
      s: () => zoom(1 / 0.75), "-": () => zoom(1 / 0.75),
      a: () => pan(-0.2), d: () => pan(0.2), arrowleft: () => pan(-0.2), arrowright: () => pan(0.2),
      f: () => this.fit(), l: () => this.other_theme(),
      o: () => app.set_axis("order"), t: () => app.set_axis("time"),
      ".": () => app.select(app.view.next_event(1)), ",": () => app.select(app.view.next_event(-1)),
      "]": () => this.step(app.view.next_finding(1)), "[": () => this.step(app.view.next_finding(-1)),
      n: () => this.step(app.view.next_match(event.shiftKey ? -1 : 1)),
      "/": () => document.getElementById("query").select(),
      "?": () => document.getElementById("help").click(),
      escape: () => this.let_go(),
    };
    const action = actions[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // On paper: light, all lanes below one another, as wide as the page.
  before_print() {
    const { app } = this;
    this.before = { theme: app.theme, width: app.view.width };
    app.theme = app.painter.theme = new Theme("light");
    document.documentElement.dataset.theme = "light";
    const height = Math.min(app.view.height, 3000);
    app.view.width = 1040;
    app.painter.draw(fitted(app.lanes, 1040, height), 0, height);
    app.painter.draw_ruler(fitted(document.getElementById("ruler"), 1040, kRulerHeight));
    app.overview.draw(fitted(document.getElementById("overview"), 1040, 46), 46, app.theme);
    app.panels.build_legend();
  }

  after_print() {
    const { app } = this;
    app.theme = app.painter.theme = this.before.theme;
    document.documentElement.dataset.theme = app.theme.name;
    app.panels.build_legend();
    app.redraw();
  }
}
