// Starts the page, and turns what the user does into changes of the view.

class App {
  constructor(picture) {
    this.picture = picture;
    this.view = new View(picture);
    this.theme = new Theme(remembered_theme() || Theme.preferred());
    this.painter = new Painter(this.view, this.theme);
    this.overview = new Overview(this.view);
    this.panels = new Panels(this);
    this.lanes = document.getElementById("lanes");
    this.scroll = document.getElementById("scroll");
    this.is_asked_to_draw = false;
  }

  start() {
    document.documentElement.dataset.theme = this.theme.name;
    this.panels.build();
    new Controls(this).connect();
    this.read_hash();
    new ResizeObserver(() => this.draw()).observe(this.scroll);
    this.draw();
    this.say_ready();
  }

  // Facts for tests and for people who look at the page with a script.
  say_ready() {
    window.zeroproof = this;
    const facts = document.documentElement.dataset;
    facts.events = String(this.picture.count);
    facts.bars = String(this.picture.bar_count);
    facts.findings = String(this.picture.findings.length);
    facts.readyMs = String(Math.round(performance.now()));
  }

  redraw() {
    if (this.is_asked_to_draw) return;
    this.is_asked_to_draw = true;
    requestAnimationFrame(() => {
      this.is_asked_to_draw = false;
      this.draw();
      this.write_hash();
    });
  }

  draw() {
    const width = this.scroll.clientWidth;
    const height = this.scroll.clientHeight;
    this.view.width = width;
    this.view.fill_height(height);
    document.getElementById("space").style.height = `${Math.max(this.view.height, height)}px`;
    this.painter.draw(fitted(this.lanes, width, height), this.scroll.scrollTop, height);
    this.painter.draw_ruler(fitted(document.getElementById("ruler"), width, kRulerHeight));
    const strip = document.getElementById("overview");
    this.overview.draw(fitted(strip, width, 46), 46, this.theme);
    this.say_drawn();
  }

  say_drawn() {
    const facts = document.documentElement.dataset;
    facts.drawnBars = String(this.painter.drawn.bars);
    facts.drawnMoments = String(this.painter.drawn.moments);
    facts.drawnMarks = String(this.painter.drawn.marks);
    facts.selected = String(this.view.selected);
    facts.matches = String(this.view.matches.length);
  }

  select(event) {
    this.view.selected = event;
    this.panels.show_details();
    this.panels.show_matches();
    if (event >= 0) this.bring_into_view(event);
    this.redraw();
  }

  jump_to(event) {
    if (event < 0) return;
    const { view, picture } = this;
    view.hidden_processes.delete(picture.process_of(event));
    view.folded.delete(`p${picture.process_of(event)}`);
    view.folded.delete(`t${picture.track[event]}`);
    view.lay_out();
    view.show_event(event);
    this.select(event);
  }

  jump_to_finding(index) {
    this.jump_to(this.picture.findings[index].event);
  }

  bring_into_view(event) {
    const { view } = this;
    const place = view.place_of(event);
    const margin = (view.stop - view.start) * 0.08;
    if (place < view.start + margin || place > view.stop - margin) {
      const half = (view.stop - view.start) / 2;
      view.set_range(place - half, place + half);
    }
    const band = view.band_of(this.picture.track[event]);
    if (!band) return;
    const y = band.y + this.picture.row[event] * band.row_height;
    const height = this.scroll.clientHeight;
    if (y < this.scroll.scrollTop + kHeadHeight || y > this.scroll.scrollTop + height - 60) {
      this.scroll.scrollTop = Math.max(y - height / 3, 0);
    }
  }

  search(query) {
    this.view.search(query);
    this.panels.show_matches();
    this.redraw();
  }

  set_axis(axis) {
    if (axis === "time" && !this.picture.document.has_time) return;
    this.view.set_axis(axis);
    for (const name of ["order", "time"]) {
      document.getElementById(`by-${name}`).setAttribute("aria-pressed", String(axis === name));
    }
    this.redraw();
  }

  set_theme(name) {
    this.theme = this.painter.theme = new Theme(name);
    document.documentElement.dataset.theme = name;
    this.panels.build_legend();
    this.panels.show_details();
    try {
      localStorage.setItem("zeroproof-theme", name);
    } catch { /* pages opened from disk may have no storage */ }
    this.redraw();
  }

  changed_filter() {
    this.view.lay_out();
    this.panels.build_legend();
    this.panels.build_ranks();
    this.redraw();
  }

  // The part that is seen can be sent as a link.
  write_hash() {
    const { view } = this;
    const state = new URLSearchParams();
    state.set("from", view.start.toPrecision(7));
    state.set("to", view.stop.toPrecision(7));
    if (view.axis !== "order") state.set("axis", view.axis);
    if (view.selected >= 0) state.set("event", String(view.selected));
    if (view.query !== "") state.set("q", view.query);
    if (view.hidden_categories.size > 0) state.set("hide", [...view.hidden_categories].join("|"));
    try {
      history.replaceState(null, "", `#${state}`);
    } catch { /* not allowed everywhere */ }
  }

  read_hash() {
    const { view, picture } = this;
    const state = new URLSearchParams(location.hash.slice(1));
    if (state.get("theme")) this.set_theme(state.get("theme") === "dark" ? "dark" : "light");
    if (state.get("hide")) view.hidden_categories = new Set(state.get("hide").split("|"));
    if (state.get("axis") === "time") this.set_axis("time");
    if (state.get("q")) {
      document.getElementById("query").value = state.get("q");
      this.search(state.get("q"));
    }
    if (state.get("hide")) this.changed_filter();
    const finding = Number(state.get("finding") ?? -1);
    const event = Number(state.get("event") ?? -1);
    if (finding >= 0 && finding < picture.findings.length) this.jump_to_finding(finding);
    else if (event >= 0 && event < picture.count) this.jump_to(event);
    else if (!state.has("from")) this.show_first();
    const [from, to] = [Number(state.get("from")), Number(state.get("to"))];
    if (state.has("from") && to > from) view.set_range(from, to);
  }

  // A long run opens at its first finding, a short one as a whole.
  show_first() {
    const { view, picture } = this;
    const bad = picture.findings.find((finding) => finding.event >= 0 && !finding.is_latent);
    if (view.all[1] > 160 && bad) {
      const place = view.place_of(bad.event);
      view.set_range(place - 40, place + 40);
    }
    if (bad) this.select(bad.event);
  }
}

function remembered_theme() {
  try {
    return localStorage.getItem("zeroproof-theme");
  } catch {
    return null;
  }
}

// The context of a canvas of this size, sharp on every screen.
function fitted(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

async function main() {
  try {
    const picture = await decode_picture(document.getElementById("picture").textContent.trim());
    new App(picture).start();
  } catch (error) {
    const box = document.getElementById("failure");
    box.hidden = false;
    box.textContent = typeof DecompressionStream === "undefined"
      ? "This page needs a browser of 2023 or later (DecompressionStream)."
      : `This page could not be shown: ${error.message}`;
    console.error(error);
  }
}

main();
