// The picture as the page holds it: columns instead of objects, so that 100,000 events stay light.

// The script element holds base64 of gzip of: one line of JSON, then one line of fields an event.
async function decode_picture(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const lines = (await new Response(stream).text()).split("\n");
  return new Picture(JSON.parse(lines[0]), lines);
}

// Columns of numbers that only grow are written as differences.
function sums(differences) {
  const values = new Float64Array(differences.length);
  let sum = 0;
  for (let i = 0; i < values.length; i++) values[i] = sum += differences[i];
  return values;
}

class Picture {
  constructor(document, lines) {
    this.document = document;
    this.lines = lines;
    this.strings = document.strings;
    this.processes = document.processes;
    this.tracks = document.tracks;
    this.categories = document.categories;
    this.findings = document.findings;
    const events = document.events;
    this.count = events.lc.length;
    this.lc = sums(events.lc);
    this.tick = sums(events.tick);
    this.time = sums(events.time);
    this.kind = events.kind;
    this.words = events.words;
    this.category = Uint8Array.from(events.category);
    this.track = Uint32Array.from(events.track);
    this.row = Uint32Array.from(events.row);
    this.is_moment = Uint8Array.from(events.moment);
    this.bars = document.bars;
    this.bar_count = this.bars.begin.length;
    this.index();
  }

  // A shape is a bar (its number) or the moment of an event (its number, inverted).
  index() {
    this.rows = this.tracks.map((track) => Array.from({ length: Math.max(track.rows, 1) }, () => []));
    this.bar_of = new Int32Array(this.count).fill(-1);
    this.end_of = new Int32Array(this.count).fill(-1);
    this.peers = new Map();
    const { begin, end, track, row, peer } = this.bars;
    for (let b = 0; b < this.bar_count; b++) {
      this.rows[track[b]][row[b]].push(b);
      // The bracket of the thread comes first; what an event begins besides is found by its peers.
      if (this.bar_of[begin[b]] < 0) this.bar_of[begin[b]] = b;
      if (this.end_of[end[b]] < 0) this.end_of[end[b]] = b;
      if (peer[b] < 0) continue;
      if (!this.peers.has(peer[b])) this.peers.set(peer[b], []);
      this.peers.get(peer[b]).push(b);
    }
    for (let e = 0; e < this.count; e++) {
      if (this.is_moment[e]) this.rows[this.track[e]][this.row[e]].push(~e);
    }
    this.tie();
    for (const rows of this.rows) {
      for (let i = 0; i < rows.length; i++) rows[i] = this.sorted(rows[i]);
    }
    this.findings_of = new Map();
    this.findings.forEach((finding, i) => {
      if (finding.event < 0) return;
      if (!this.findings_of.has(finding.event)) this.findings_of.set(finding.event, []);
      this.findings_of.get(finding.event).push(i);
    });
  }

  // The same collective on every rank, a callback and what queued it: lists of events, by event.
  tie() {
    this.ties = new Map();
    const add = (event, group) => {
      if (!this.ties.has(event)) this.ties.set(event, []);
      this.ties.get(event).push(group);
    };
    const { begin, end } = this.bars;
    for (const bars of this.peers.values()) {
      const group = bars.map((b) => begin[b]);
      for (const b of bars) {
        add(begin[b], group);
        if (end[b] !== begin[b]) add(end[b], group);
      }
    }
    for (const link of this.document.links) link.forEach((event) => add(event, link));
  }

  sorted(shapes) {
    const key = (shape) => this.tick[shape >= 0 ? this.bars.begin[shape] : ~shape];
    return Int32Array.from(shapes.sort((a, b) => key(a) - key(b) || this.first(a) - this.first(b)));
  }

  first(shape) {
    return shape >= 0 ? this.bars.begin[shape] : ~shape;
  }

  last(shape) {
    return shape >= 0 ? this.bars.end[shape] : ~shape;
  }

  category_of(shape) {
    return shape >= 0 ? this.bars.category[shape] : this.category[~shape];
  }

  text_of(shape) {
    return this.strings[shape >= 0 ? this.bars.label[shape] : this.words[~shape]];
  }

  process_of(event) {
    return this.tracks[this.track[event]].process;
  }

  kind_of(event) {
    return this.strings[this.kind[event]];
  }

  fields_of(event) {
    return JSON.parse(this.lines[event + 1]);
  }

  // Everything of the event that can be searched, in small letters; made when it is first asked for.
  haystack(event) {
    if (!this.haystacks) this.haystacks = new Array(this.count);
    let text = this.haystacks[event];
    if (text === undefined) {
      const findings = (this.findings_of.get(event) || []).map((i) => this.findings[i]);
      const rules = findings.map((f) => `${f.number} ${f.id} ${f.text}`).join(" ");
      text = `${this.strings[this.words[event]]} ${this.kind_of(event)} lc=${this.lc[event]} ` +
        `${this.lines[event + 1]} ${rules}`;
      this.haystacks[event] = text = text.toLowerCase();
    }
    return text;
  }
}

// The members of the fields as rows, nested ones by their path.
function flat_fields(fields, prefix = "") {
  const rows = [];
  for (const [key, value] of Object.entries(fields)) {
    const is_object = value !== null && typeof value === "object" && !Array.isArray(value);
    if (is_object) rows.push(...flat_fields(value, `${prefix}${key}.`));
    else rows.push([prefix + key, typeof value === "string" ? value : JSON.stringify(value)]);
  }
  return rows;
}

function time_text(ns) {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toPrecision(4)} µs`;
  if (ns < 1e9) return `${(ns / 1e6).toPrecision(4)} ms`;
  return `${(ns / 1e9).toPrecision(4)} s`;
}
