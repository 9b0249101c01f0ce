// What of the picture is shown, and where. Does not use the document.

const kGutter = 168;       // columns left of the lanes, in pixels
const kRowHeights = { thread: 19, collectives: 17, gathers: 13, buckets: 15 };
const kHeadHeight = 26;
const kTrackGap = 5;
const kRowsMax = 60;       // a track of more begins folded

class View {
  constructor(picture) {
    this.picture = picture;
    this.axis = "order";
    this.width = 800;
    this.scale = 1;  // of the rows: a run of few lanes uses the room there is
    this.hidden_categories = new Set();
    this.hidden_processes = new Set();
    this.folded = new Set();  // "p3": process, "t5": track
    picture.tracks.forEach((track, t) => { if (track.rows > kRowsMax) this.folded.add(`t${t}`); });
    this.selected = -1;       // event
    this.query = "";
    this.matches = [];
    this.match = null;        // by event; null without a query
    this.lay_out();
    this.measure();
    this.fit();
  }

  // Where lanes lie, from the top.
  lay_out() {
    const picture = this.picture;
    this.bands = [];
    let y = 0;
    picture.processes.forEach((process, p) => {
      if (this.hidden_processes.has(p)) return;
      this.bands.push({ type: "process", process: p, y, height: kHeadHeight });
      y += kHeadHeight;
      if (this.folded.has(`p${p}`)) return;
      picture.tracks.forEach((track, t) => {
        if (track.process !== p) return;
        const row_height = Math.round((kRowHeights[track.kind] || 18) * this.scale);
        const rows = this.folded.has(`t${t}`) ? 1 : Math.max(track.rows, 1);
        this.bands.push({
          type: "track", process: p, track: t, y, row_height, rows,
          height: rows * row_height + kTrackGap,
        });
        y += rows * row_height + kTrackGap;
      });
      y += 6;
    });
    this.height = y;
  }

  // Rows as tall as this height allows, within reason.
  fill_height(height) {
    this.scale = 1;
    this.lay_out();
    this.scale = Math.min(Math.max((height * 0.92) / Math.max(this.height, 1), 1), 1.5);
    if (this.scale > 1) this.lay_out();
  }

  measure() {
    const { tick, time, count } = this.picture;
    this.ends = { order: [0, 1], time: [0, 1] };
    for (let e = 0; e < count; e++) {
      this.ends.order[1] = Math.max(this.ends.order[1], tick[e] + 1);
      this.ends.time[1] = Math.max(this.ends.time[1], time[e]);
    }
  }

  get all() {
    return this.ends[this.axis];
  }

  // In units of the axis: events in order, or nanoseconds.
  begin_of(shape) {
    const event = this.picture.first(shape);
    return this.axis === "order" ? this.picture.tick[event] : this.picture.time[event];
  }

  end_of(shape) {
    const event = this.picture.last(shape);
    return this.axis === "order" ? this.picture.tick[event] + 1 : this.picture.time[event];
  }

  place_of(event) {
    return this.axis === "order" ? this.picture.tick[event] + 0.5 : this.picture.time[event];
  }

  x_of(place) {
    return kGutter + ((place - this.start) / (this.stop - this.start)) * (this.width - kGutter);
  }

  place_at(x) {
    return this.start + ((x - kGutter) / (this.width - kGutter)) * (this.stop - this.start);
  }

  fit() {
    const margin = (this.all[1] - this.all[0]) * 0.01;
    this.set_range(this.all[0] - margin, this.all[1] + margin);
  }

  set_range(start, stop) {
    const whole = this.all[1] - this.all[0];
    const least = this.axis === "order" ? 3 : Math.max(whole * 1e-7, 20);
    const span = Math.min(Math.max(stop - start, least), whole * 1.1);
    const middle = (start + stop) / 2;
    const low = this.all[0] - whole * 0.05;
    const high = this.all[1] + whole * 0.05;
    this.start = Math.min(Math.max(middle - span / 2, low), Math.max(high - span, low));
    this.stop = this.start + span;
  }

  zoom(factor, x) {
    const place = this.place_at(x === undefined ? (kGutter + this.width) / 2 : x);
    this.set_range(place - (place - this.start) * factor, place + (this.stop - place) * factor);
  }

  pan(share) {
    const by = (this.stop - this.start) * share;
    this.set_range(this.start + by, this.stop + by);
  }

  // So that the event stands in the middle, with its neighbours readable.
  show_event(event) {
    const place = this.place_of(event);
    const whole = this.all[1] - this.all[0];
    const readable = this.axis === "order" ? 36 : Math.max(whole * 0.02, 1);
    const span = Math.min(this.stop - this.start, readable);
    this.set_range(place - span / 2, place + span / 2);
  }

  set_axis(axis) {
    if (axis === this.axis) return;
    const center = this.selected >= 0 ? this.selected : this.event_near((this.start + this.stop) / 2);
    const share = (this.stop - this.start) / (this.all[1] - this.all[0]);
    this.axis = axis;
    const span = share * (this.all[1] - this.all[0]);
    const place = center >= 0 ? this.place_of(center) : (this.all[0] + this.all[1]) / 2;
    this.set_range(place - span / 2, place + span / 2);
  }

  event_near(place) {
    let best = -1;
    let distance = Infinity;
    for (let e = 0; e < this.picture.count; e++) {
      const away = Math.abs(this.place_of(e) - place);
      if (away < distance) [best, distance] = [e, away];
    }
    return best;
  }

  is_visible(event) {
    return !this.hidden_categories.has(this.picture.categories[this.picture.category[event]]) &&
      !this.hidden_processes.has(this.picture.process_of(event));
  }

  // Every word of the query has to occur.
  search(query) {
    this.query = query;
    const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
    this.matches = [];
    this.match = words.length === 0 ? null : new Uint8Array(this.picture.count);
    for (let e = 0; this.match && e < this.picture.count; e++) {
      const haystack = this.picture.haystack(e);
      if (!words.every((word) => haystack.includes(word))) continue;
      this.match[e] = 1;
      this.matches.push(e);
    }
  }

  is_match(shape) {
    if (!this.match) return true;
    return this.match[this.picture.first(shape)] === 1 || this.match[this.picture.last(shape)] === 1;
  }

  // From the selected event on, in either direction.
  next_match(direction) {
    const visible = this.matches.filter((event) => this.is_visible(event));
    return next_in(visible, this.selected, direction);
  }

  next_finding(direction) {
    const events = [...this.picture.findings_of.keys()].sort((a, b) => a - b);
    return next_in(events, this.selected, direction);
  }

  next_event(direction) {
    const from = this.selected < 0 ? (direction > 0 ? -1 : this.picture.count) : this.selected;
    const process = this.selected < 0 ? -1 : this.picture.process_of(this.selected);
    for (let e = from + direction; e >= 0 && e < this.picture.count; e += direction) {
      if (process >= 0 && this.picture.process_of(e) !== process) continue;
      if (this.is_visible(e)) return e;
    }
    return this.selected;
  }

  band_of(track) {
    return this.bands.find((band) => band.track === track);
  }
}

// The element after (or before) `current` in a sorted list, round the end; -1 when it is empty.
function next_in(sorted, current, direction) {
  if (sorted.length === 0) return -1;
  if (direction > 0) return sorted.find((value) => value > current) ?? sorted[0];
  return sorted.findLast((value) => value < current) ?? sorted[sorted.length - 1];
}
