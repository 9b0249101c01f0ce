// What stands around the lanes. Text of a trace only ever becomes textContent.

function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key === "text") node.textContent = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function button(text, title, action, pressed) {
  const node = element("button", { type: "button", title, text, onclick: action });
  if (pressed !== undefined) node.setAttribute("aria-pressed", String(pressed));
  return node;
}

function fill(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null));
}

const kKeys = [
  ["W S, + −, Ctrl wheel", "zoom"],
  ["A D, ← →, drag", "move"],
  ["F", "all of it"],
  [". ,", "next, previous event of the rank"],
  ["] [", "next, previous finding"],
  ["/", "search"],
  ["N, Shift N", "next, previous match"],
  ["O T", "by order, by time"],
  ["L", "light or dark"],
  ["Esc", "let go of the selection, then of the search"],
];

class Panels {
  constructor(app) {
    this.app = app;
    this.find = (id) => document.getElementById(id);
    this.theme_marks = [];
  }

  build() {
    const { picture } = this.app;
    this.find("title").textContent = picture.document.title;
    this.find("note").textContent = picture.document.note;
    this.build_source();
    this.build_verdict();
    this.build_legend();
    this.build_ranks();
    this.build_findings();
    this.build_reproduce();
    fill(this.find("keys"), element("h2", { text: "Keys" }), element("dl", {},
      ...kKeys.flatMap(([key, what]) => [element("dt", { text: key }), element("dd", { text: what })])));
    this.show_details();
  }

  build_source() {
    const { source } = this.app.picture.document;
    document.body.classList.toggle("has-source", Boolean(source));
    this.find("source").hidden = !source;
    this.find("source").textContent = source;
  }

  build_verdict() {
    const { findings, document: facts } = this.app.picture;
    const bad = findings.filter((finding) => !finding.is_latent);
    const rules = new Set(bad.map((finding) => finding.number));
    const verdict = this.find("verdict");
    verdict.className = bad.length > 0 ? "verdict is-bad" : "verdict is-good";
    const places = bad.length > rules.size ? `, ${bad.length} places` : "";
    const [first] = rules;
    const what = rules.size > 1 ? `${rules.size} rules` : /^[A-Z]\d/.test(first) ? first : "1 rule";
    verdict.textContent = bad.length === 0 ? facts.good : `${what} broken${places}`;
    const latent = this.find("latent");
    latent.hidden = bad.length === findings.length;
    latent.textContent = `${findings.length - bad.length} latent`;
  }

  // Also the filter by kind.
  build_legend() {
    const { picture, view, theme } = this.app;
    const counts = new Array(picture.categories.length).fill(0);
    for (let e = 0; e < picture.count; e++) counts[picture.category[e]]++;
    fill(this.find("legend"), ...picture.categories.map((category, i) => {
      if (counts[i] === 0) return null;
      const swatch = element("i");
      swatch.style.background = theme.fill(category);
      const is_on = !view.hidden_categories.has(category);
      const chip = button("", `${is_on ? "hide" : "show"} ${category}`, (event) => {
        if (event.shiftKey || event.altKey) this.only(category, counts);
        else toggle(view.hidden_categories, category);
        this.app.changed_filter();
      }, is_on);
      chip.append(swatch, category, element("small", { text: counts[i].toLocaleString("en") }));
      return chip;
    }));
  }

  only(category, counts) {
    const { picture, view } = this.app;
    const others = picture.categories.filter((name, i) => name !== category && counts[i] > 0);
    const is_alone = others.every((name) => view.hidden_categories.has(name));
    view.hidden_categories = new Set(is_alone ? [] : others);
  }

  build_ranks() {
    const { picture, view } = this.app;
    const ranks = picture.processes.length < 2 ? [] : picture.processes.map((process, p) =>
      button(process.title, `hide or show ${process.title}`, () => {
        toggle(view.hidden_processes, p);
        this.app.changed_filter();
      }, !view.hidden_processes.has(p)));
    fill(this.find("ranks"), ...ranks);
  }

  // A card a rule, in it a button a place.
  build_findings() {
    const { picture } = this.app;
    document.body.classList.toggle("has-findings", picture.findings.length > 0);
    const rules = new Map();
    picture.findings.forEach((finding, i) => {
      const key = `${finding.id} ${finding.is_latent}`;
      if (!rules.has(key)) rules.set(key, []);
      rules.get(key).push(i);
    });
    fill(this.find("findings"), ...[...rules.values()].map((places) => this.rule_card(places)));
  }

  rule_card(places) {
    const { picture } = this.app;
    const first = picture.findings[places[0]];
    return element("li", { class: "rule" },
      element("header", {},
        element("b", { class: first.is_latent ? "is-latent" : "is-bad", text: first.number }),
        element("strong", {}, ...breakable(first.id))),
      first.statement ? element("p", { class: "statement", text: first.statement }) : null,
      ...places.map((i) => this.place_button(i)));
  }

  place_button(i) {
    const { picture } = this.app;
    const finding = picture.findings[i];
    const where = finding.event < 0 ? finding.where : `${finding.where}, lc ${picture.lc[finding.event]}`;
    return element("button", { type: "button", class: "finding", "data-finding": String(i),
                               onclick: () => this.app.jump_to_finding(i) },
      element("span", { class: "where", text: where }), element("span", { text: finding.text }));
  }

  build_reproduce() {
    const { reproduce } = this.app.picture.document;
    const box = this.find("reproduce");
    box.hidden = !reproduce;
    if (!reproduce) return;
    const copy = button("copy", "copy the command", async () => {
      try {
        await navigator.clipboard.writeText(reproduce);
        copy.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(box.querySelector("code"));
      }
    });
    fill(box, element("span", { text: "reproduce" }), element("code", { text: reproduce }), copy);
  }

  show_matches() {
    const { view } = this.app;
    const count = view.matches.length;
    const at = view.matches.indexOf(view.selected);
    this.find("matches").textContent = view.match === null ? ""
      : count === 0 ? "no match" : at < 0 ? `${count.toLocaleString("en")} found`
        : `${(at + 1).toLocaleString("en")} of ${count.toLocaleString("en")}`;
  }

  show_details() {
    const { view, picture } = this.app;
    const box = this.find("details");
    const event = view.selected;
    box.hidden = event < 0;
    this.mark_findings();
    if (event < 0) return;
    const rows = this.rows_of(event).map(([key, value]) =>
      element("tr", {}, element("th", { scope: "row", text: key }), element("td", { text: value })));
    const findings = (picture.findings_of.get(event) || []).map((i) => this.finding_note(picture.findings[i]));
    fill(box,
      element("header", {},
        element("i", { class: "swatch" }),
        element("h2", { text: picture.strings[picture.words[event]] }),
        element("code", { text: picture.kind_of(event) }),
        button("‹", "previous event (,)", () => this.app.select(view.next_event(-1))),
        button("›", "next event (.)", () => this.app.select(view.next_event(1))),
        button("×", "close (Esc)", () => this.app.select(-1))),
      ...findings,
      element("table", {}, element("tbody", {}, ...rows)),
      this.related(event));
    box.querySelector(".swatch").style.background =
      this.app.theme.fill(picture.categories[picture.category[event]]);
  }

  finding_note(finding) {
    return element("p", { class: finding.is_latent ? "note is-latent" : "note is-bad" },
      element("b", { text: `${finding.number} ${finding.id}` }), ` ${finding.text}`,
      finding.statement ? element("small", { text: ` Rule: ${finding.statement}.` }) : null);
  }

  // Where and when, then all fields of the event.
  rows_of(event) {
    const { picture } = this.app;
    const track = picture.tracks[picture.track[event]];
    const rows = [["where", `${picture.processes[track.process].title}, ${track.name}`],
                  ["lc", String(picture.lc[event])]];
    if (picture.document.has_time) rows.push(["time", time_text(picture.time[event])]);
    const bar = picture.bar_of[event];
    if (bar >= 0) {
      const end = picture.bars.end[bar];
      const events = picture.lc[end] - picture.lc[event];
      const length = picture.document.has_time
        ? `, ${time_text(picture.time[end] - picture.time[event])}` : "";
      rows.push(["until", picture.bars.open[bar] === 1 ? "its end is not in the trace"
        : `lc ${picture.lc[end]}: ${events} events${length}`]);
    }
    return rows.concat(flat_fields(picture.fields_of(event)));
  }

  // What the event is tied to, to go there.
  related(event) {
    const { picture } = this.app;
    const events = new Set((picture.ties.get(event) || []).flat());
    const bar = picture.bar_of[event];
    const ended = picture.end_of[event];
    if (bar >= 0 && picture.bars.open[bar] === 0) events.add(picture.bars.end[bar]);
    if (ended >= 0) events.add(picture.bars.begin[ended]);
    events.delete(event);
    if (events.size === 0) return null;
    return element("nav", {}, element("span", { text: "tied to" }), ...[...events].slice(0, 12).map((other) =>
      button(`${picture.processes[picture.process_of(other)].title} lc ${picture.lc[other]}: ` +
             picture.strings[picture.words[other]], "go there", () => this.app.jump_to(other))));
  }

  mark_findings() {
    const { view, picture } = this.app;
    for (const item of this.find("findings").querySelectorAll(".finding")) {
      const finding = picture.findings[Number(item.dataset.finding)];
      item.classList.toggle("is-current", view.selected >= 0 && finding.event === view.selected);
    }
  }

  show_tip(shape, x, y) {
    const { picture } = this.app;
    const tip = this.find("tip");
    tip.hidden = !shape || shape.event === undefined;
    if (tip.hidden) return;
    const findings = (picture.findings_of.get(shape.event) || []).map((i) => this.finding_note(picture.findings[i]));
    const label = shape.bar >= 0 ? picture.text_of(shape.bar) : picture.strings[picture.words[shape.event]];
    fill(tip, element("h2", { text: label }), element("code", { text: picture.kind_of(shape.event) }), ...findings,
      element("table", {}, element("tbody", {}, ...this.rows_of(shape.event).map(([key, value]) =>
        element("tr", {}, element("th", { text: key }), element("td", { text: value }))))));
    const left = x + 16 + tip.offsetWidth > innerWidth ? Math.max(x - tip.offsetWidth - 12, 4) : x + 16;
    const above = y + 16 + tip.offsetHeight > innerHeight ? Math.max(innerHeight - tip.offsetHeight - 8, 4) : y + 16;
    tip.style.left = `${left}px`;
    tip.style.top = `${above}px`;
  }
}

// A long name that may be broken after its points and underscores.
function breakable(name) {
  return name.split(/(?<=[._])/).flatMap((part) => [part, document.createElement("wbr")]);
}

function toggle(set, value) {
  if (!set.delete(value)) set.add(value);
}
