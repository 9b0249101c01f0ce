// Draws a view on a canvas. Keeps what it drew, for finding the shape under the pointer.

const kFamily = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';
const kFont = `11px ${kFamily}`;
const kFontBold = `600 11.5px ${kFamily}`;
const kRulerHeight = 26;

class Painter {
  constructor(view, theme) {
    this.view = view;
    this.theme = theme;
    this.widths = new Map();
  }

  // Draws the part between `top` and `top + height` of the lanes.
  draw(context, top, height) {
    this.context = context;
    this.shapes = [];
    this.drawn = { bars: 0, moments: 0, marks: 0 };
    const { view, theme } = this;
    context.clearRect(0, 0, view.width, height);
    context.font = `${(11 * Math.sqrt(view.scale)).toFixed(1)}px ${kFamily}`;
    context.textBaseline = "middle";
    context.lineWidth = 1;
    this.draw_grid(height);
    for (const band of view.bands) {
      if (band.y + band.height < top || band.y > top + height) continue;
      if (band.type === "process") this.draw_process(band, band.y - top);
      else this.draw_track(band, band.y - top);
    }
    this.draw_peers(top);
    this.draw_finding_lines(top, height);
    context.strokeStyle = theme.page.line;
    this.line(kGutter + 0.5, 0, kGutter + 0.5, height);
  }

  line(x0, y0, x1, y1) {
    this.context.beginPath();
    this.context.moveTo(x0, y0);
    this.context.lineTo(x1, y1);
    this.context.stroke();
  }

  steps() {
    const { view } = this;
    const wish = (view.stop - view.start) / Math.max((view.width - kGutter) / 110, 1);
    const power = 10 ** Math.floor(Math.log10(wish));
    const step = [1, 2, 5, 10].map((times) => times * power).find((value) => value >= wish);
    return view.axis === "order" ? Math.max(step, 1) : step;
  }

  draw_grid(height) {
    const { view, context, theme } = this;
    const step = this.steps();
    context.strokeStyle = theme.page.grid;
    for (let at = Math.ceil(view.start / step) * step; at <= view.stop; at += step) {
      const x = Math.round(view.x_of(at)) + 0.5;
      if (x > kGutter) this.line(x, 0, x, height);
    }
  }

  draw_ruler(context) {
    const { view, theme } = this;
    const step = this.steps();
    context.clearRect(0, 0, view.width, kRulerHeight);
    context.font = kFont;
    context.textBaseline = "middle";
    context.fillStyle = theme.page.faint;
    context.fillText(view.axis === "order" ? "events in order" : "time", 10, kRulerHeight / 2);
    context.strokeStyle = theme.page.line;
    for (let at = Math.ceil(view.start / step) * step; at <= view.stop; at += step) {
      const x = Math.round(view.x_of(at)) + 0.5;
      if (x < kGutter || at < 0) continue;
      context.beginPath();
      context.moveTo(x, kRulerHeight - 6);
      context.lineTo(x, kRulerHeight);
      context.stroke();
      context.fillText(view.axis === "order" ? String(at) : time_text(at), x + 4, kRulerHeight / 2);
    }
    this.draw_flags(context);
  }

  // One flag a place; findings of one place share it.
  draw_flags(context) {
    const { view, theme } = this;
    this.flags = [];
    let free = -Infinity;
    const marked = [...view.picture.findings_of].map(([event, list]) => [view.place_of(event), event, list]);
    for (const [place, event, list] of marked.sort((a, b) => a[0] - b[0])) {
      const x = view.x_of(place);
      if (x < kGutter || x > view.width || view.hidden_processes.has(view.picture.process_of(event))) continue;
      const findings = list.map((i) => view.picture.findings[i]);
      const text = [...new Set(findings.map((f) => f.number))].join(" ");
      const width = context.measureText(text).width + 10;
      if (x - width / 2 < free) continue;
      context.fillStyle = findings.some((f) => !f.is_latent) ? theme.page.bad : theme.page.latent;
      rounded(context, x - width / 2, 4, width, 16, 4);
      context.fill();
      context.fillStyle = theme.name === "dark" ? "#1b0d0b" : "#ffffff";
      context.fillText(text, x - width / 2 + 5, 12.5);
      this.flags.push({ x0: x - width / 2, x1: x + width / 2, event });
      free = x + width / 2 + 3;
    }
  }

  draw_process(band, y) {
    const { context, view, theme } = this;
    const process = view.picture.processes[band.process];
    context.fillStyle = theme.page.head;
    context.fillRect(0, y, view.width, band.height);
    context.strokeStyle = theme.page.line;
    this.line(0, y + 0.5, view.width, y + 0.5);
    context.fillStyle = theme.page.faint;
    context.fillText(view.folded.has(`p${band.process}`) ? "▸" : "▾", 8, y + band.height / 2);
    const font = context.font;
    context.font = kFontBold;
    context.fillStyle = theme.page.text;
    context.fillText(process.title, 22, y + band.height / 2);
    const used = 22 + context.measureText(process.title).width + 14;
    context.font = kFont;
    context.fillStyle = theme.page.faint;
    context.fillText(this.clipped(process.facts.map((fact) => fact.join(" ")).join("  ·  "),
                                  view.width - used - 12), used, y + band.height / 2);
    context.font = font;
    this.shapes.push({ x0: 0, x1: view.width, y0: y, y1: y + band.height, fold: `p${band.process}` });
  }

  draw_track(band, y) {
    const { context, view, theme } = this;
    const picture = view.picture;
    const track = picture.tracks[band.track];
    context.save();
    context.beginPath();
    context.rect(kGutter, y, view.width - kGutter, band.height);
    context.clip();
    for (let row = 0; row < band.rows; row++) {
      this.draw_row(picture.rows[band.track][row], y + row * band.row_height + 2, band.row_height - 2);
    }
    context.restore();
    context.strokeStyle = theme.page.line;
    this.line(0, y + band.height - 0.5, view.width, y + band.height - 0.5);
    context.fillStyle = theme.page.faint;
    const fold = view.folded.has(`t${band.track}`) ? "▸ " : track.rows > 1 ? "▾ " : "";
    context.fillText(this.clipped(fold + track.name, kGutter - 24), 20,
                     y + Math.min(band.height, 20) / 2 + 1);
    this.shapes.push({
      x0: 0, x1: kGutter, y0: y, y1: y + band.height, fold: `t${band.track}`, title: track.name,
    });
  }

  // Bars of a row do not overlap, so their ends are in order as their begins are.
  draw_row(shapes, y, height) {
    const { view } = this;
    let low = 0;
    let high = shapes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (view.end_of(shapes[middle]) < view.start) low = middle + 1;
      else high = middle;
    }
    let drawn_to = -Infinity;
    for (let i = low; i < shapes.length; i++) {
      const begin = view.begin_of(shapes[i]);
      if (begin > view.stop) break;
      const shape = shapes[i];
      if (this.is_hidden(shape)) continue;
      const x0 = view.x_of(begin);
      const x1 = Math.max(view.x_of(view.end_of(shape)), x0 + 1.5);
      const is_special = view.picture.findings_of.has(view.picture.first(shape));
      if (x1 < drawn_to + 1 && !is_special) continue;
      const next = i + 1 < shapes.length ? view.x_of(view.begin_of(shapes[i + 1])) : Infinity;
      if (shape >= 0) this.draw_bar(shape, x0, x1, y, height);
      else this.draw_moment(~shape, x0, x1, next, y, height);
      drawn_to = Math.max(drawn_to, x1);
    }
  }

  is_hidden(shape) {
    const { view } = this;
    return view.hidden_categories.has(view.picture.categories[view.picture.category_of(shape)]);
  }

  draw_bar(bar, x0, x1, y, height) {
    const { context, view, theme } = this;
    const picture = view.picture;
    const category = picture.categories[picture.bars.category[bar]];
    const is_open = picture.bars.open[bar] === 1;
    context.globalAlpha = view.is_match(bar) ? (picture.bars.is_faint[bar] ? 0.45 : 1) : theme.page.dim;
    context.fillStyle = theme.fill(category);
    if (x1 - x0 < 8) {
      context.fillRect(x0, y, x1 - x0, height - 1);  // far quicker than a path
    } else {
      rounded(context, x0 + 0.5, y, x1 - x0 - 1, height - 1, 3);
      context.fill();
    }
    if (is_open && x1 - x0 > 4) {  // it never ended: its right side is open
      context.strokeStyle = theme.page.latent;
      context.setLineDash([3, 2]);
      this.line(x1 - 1, y, x1 - 1, y + height - 1);
      context.setLineDash([]);
    }
    const text_start = Math.max(x0, kGutter);
    this.write(picture.text_of(bar), text_start + 5, Math.min(x1, view.width) - text_start - 8, y, height);
    context.globalAlpha = 1;
    this.outline(picture.bars.begin[bar], picture.bars.end[bar], { x0, x1, y, height });
    this.drawn.bars++;
    this.shapes.push({ x0, x1, y0: y, y1: y + height, event: picture.bars.begin[bar], bar });
  }

  // Wide enough: a pill with its words; else a mark, with words where there is room to its right.
  draw_moment(event, x0, x1, next, y, height) {
    const { context, view, theme } = this;
    const picture = view.picture;
    context.globalAlpha = view.is_match(~event) ? 1 : theme.page.dim;
    context.fillStyle = theme.fill(picture.categories[picture.category[event]]);
    const is_pill = x1 - x0 >= 12;
    const mark = is_pill ? Math.min(x1 - 1, x0 + 220) : Math.min(x1, x0 + 4);
    if (is_pill) {
      rounded(context, x0 + 0.5, y + 1, mark - x0, height - 3, (height - 3) / 2);
      context.fill();
    } else {
      context.fillRect(x0, y + 1, Math.max(mark - x0, 1.5), height - 3);
    }
    const text = picture.strings[picture.words[event]];
    const is_inside = mark - x0 >= 64 || this.text_width(text) + 12 <= mark - x0;
    if (is_inside) {
      this.write(text, x0 + 7, mark - x0 - 10, y, height - 1);
    } else if (next - mark > 34) {
      context.fillStyle = theme.page.faint;
      context.fillText(this.clipped(text, Math.min(next, view.width) - mark - 8), mark + 4, y + height / 2);
    }
    context.globalAlpha = 1;
    this.outline(event, event, { x0, x1: mark, y, height });
    this.drawn.moments++;
    this.shapes.push({ x0: x0 - 1, x1: Math.max(mark, x0 + 4), y0: y, y1: y + height, event, bar: -1 });
  }

  // The selected event and the bad ones have a frame; an event that ends a bar frames it, too.
  outline(first, last, { x0, x1, y, height }) {
    const { context, view, theme } = this;
    if (view.selected < 0 && view.picture.findings.length === 0) return;
    const findings = view.picture.findings_of.get(first) ||
      (view.picture.end_of[last] >= 0 && view.picture.findings_of.get(last));
    if (findings) {
      const is_bad = findings.some((i) => !view.picture.findings[i].is_latent);
      context.strokeStyle = is_bad ? theme.page.bad : theme.page.latent;
      context.lineWidth = 2;
      rounded(context, x0 - 1, y - 1, Math.max(x1 - x0, 3) + 2, height + 1, 4);
      context.stroke();
      context.lineWidth = 1;
      this.drawn.marks++;
    }
    if (view.selected >= 0 && (view.selected === first || view.selected === last)) {
      context.strokeStyle = theme.page.select;
      context.lineWidth = 2;
      rounded(context, x0 - 2.5, y - 2.5, Math.max(x1 - x0, 3) + 5, height + 4, 5);
      context.stroke();
      context.lineWidth = 1;
    }
  }

  // The same collective on the other ranks, the callback that was queued here.
  draw_peers(top) {
    const { view, context, theme } = this;
    if (view.selected < 0) return;
    context.strokeStyle = theme.page.select;
    context.setLineDash([4, 3]);
    for (const peers of view.picture.ties.get(view.selected) || []) {
      const places = peers.map((event) => this.middle_of(event, top)).filter((place) => place);
      for (let i = 1; i < places.length; i++) {
        this.line(places[i - 1].x, places[i - 1].y, places[i].x, places[i].y);
      }
    }
    context.setLineDash([]);
  }

  middle_of(event, top) {
    const { view } = this;
    const band = view.band_of(view.picture.track[event]);
    if (!band) return null;
    const row = Math.min(view.picture.row[event], band.rows - 1);
    const x = Math.max(view.x_of(view.place_of(event)), kGutter);
    return { x, y: band.y - top + (row + 0.5) * band.row_height };
  }

  draw_finding_lines(top, height) {
    const { view, context, theme } = this;
    for (const [event, list] of view.picture.findings_of) {
      const x = view.x_of(view.place_of(event));
      if (x < kGutter || x > view.width) continue;
      const at = this.middle_of(event, top);
      if (!at) continue;
      const is_bad = list.some((i) => !view.picture.findings[i].is_latent);
      context.strokeStyle = is_bad ? theme.page.bad : theme.page.latent;
      context.globalAlpha = 0.55;
      context.setLineDash([2, 3]);
      this.line(x, 0, x, Math.min(at.y - 10, height));
      context.setLineDash([]);
      context.globalAlpha = 1;
    }
  }

  write(text, x, room, y, height) {
    if (room < 14) return;
    this.context.fillStyle = this.theme.ink;
    this.context.fillText(this.clipped(text, room), x, y + height / 2);
  }

  // Widths of letters are measured once.
  clipped(text, room) {
    if (this.text_width(text) <= room) return text;
    let width = this.width_of("…");
    for (let i = 0; i < text.length; i++) {
      width += this.width_of(text[i]);
      if (width > room) return i < 2 ? "" : text.slice(0, i) + "…";
    }
    return text;
  }

  text_width(text) {
    let width = 0;
    for (const letter of text) width += this.width_of(letter);
    return width;
  }

  width_of(letter) {
    const { font } = this.context;
    if (!this.widths.has(font)) this.widths.set(font, new Map());
    const widths = this.widths.get(font);
    let width = widths.get(letter);
    if (width === undefined) widths.set(letter, (width = this.context.measureText(letter).width));
    return width;
  }

  // The topmost shape under a point.
  shape_at(x, y) {
    for (let i = this.shapes.length - 1; i >= 0; i--) {
      const shape = this.shapes[i];
      if (x >= shape.x0 && x <= shape.x1 && y >= shape.y0 && y < shape.y1) return shape;
    }
    return null;
  }
}

function rounded(context, x, y, width, height, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, Math.min(radius, width / 2));
}

// The whole run as one strip a process: its outermost brackets, where the findings are, what is in
// view.
class Overview {
  constructor(view) {
    this.view = view;
  }

  draw(context, height, theme) {
    const { view } = this;
    const picture = view.picture;
    const width = view.width - kGutter;
    context.clearRect(0, 0, view.width, height);
    const shown = picture.processes.map((_, p) => p).filter((p) => !view.hidden_processes.has(p));
    const strip = (height - 8) / Math.max(shown.length, 1);
    shown.forEach((p, i) => this.draw_strip(context, p, 4 + i * strip, strip - 2, theme, width));
    for (const [event, list] of picture.findings_of) {
      const is_bad = list.some((f) => !picture.findings[f].is_latent);
      context.fillStyle = is_bad ? theme.page.bad : theme.page.latent;
      context.fillRect(kGutter + this.share(view.place_of(event)) * width - 1, 1, 2.5, height - 2);
    }
    this.draw_window(context, height, theme, width);
  }

  // The main thread above, the others and what is in flight below.
  draw_strip(context, process, y, height, theme, width) {
    const { view } = this;
    const picture = view.picture;
    const tracks = picture.tracks.map((track, t) => t).filter((t) => picture.tracks[t].process === process);
    tracks.slice(0, 3).forEach((t, i, all) => {
      const row_height = height / all.length;
      let drawn_to = -1;
      for (const shape of picture.rows[t][0]) {
        const x0 = kGutter + this.share(view.begin_of(shape)) * width;
        const x1 = Math.max(kGutter + this.share(view.end_of(shape)) * width, x0 + 1);
        if (x1 < drawn_to + 0.5) continue;
        context.fillStyle = theme.fill(picture.categories[picture.category_of(shape)]);
        context.fillRect(x0, y + i * row_height, x1 - x0, Math.max(row_height - 1, 1));
        drawn_to = x1;
      }
    });
  }

  draw_window(context, height, theme, width) {
    const { view } = this;
    const x0 = kGutter + Math.max(this.share(view.start), 0) * width;
    const x1 = kGutter + Math.min(this.share(view.stop), 1) * width;
    context.fillStyle = theme.page.select;
    context.globalAlpha = 0.12;
    context.fillRect(x0, 0, Math.max(x1 - x0, 3), height);
    context.globalAlpha = 0.8;
    context.strokeStyle = theme.page.select;
    context.strokeRect(x0 + 0.5, 0.5, Math.max(x1 - x0 - 1, 2), height - 1);
    context.globalAlpha = 1;
    context.font = kFont;
    context.textBaseline = "middle";
    context.fillStyle = theme.page.faint;
    context.fillText(`${view.picture.count.toLocaleString("en")} events`, 10, height / 2);
  }

  share(place) {
    const [low, high] = this.view.all;
    return (place - low) / Math.max(high - low, 1);
  }

  place_at(x) {
    const [low, high] = this.view.all;
    return low + ((x - kGutter) / (this.view.width - kGutter)) * (high - low);
  }
}
