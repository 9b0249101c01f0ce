// Search, keys and the lanes of a report. Everything else of the page stands without it.

const query = document.getElementById("query");
const matches = document.getElementById("matches");
const keys = document.getElementById("keys");
const kKeys = [["/", "search"], ["Esc", "all of it again"], ["J K", "next, previous finding"],
               ["O", "lanes of the first cause"], ["?", "these keys"]];

// What is shown or hidden as one.
const items = [...document.querySelectorAll("main tbody tr, main .finding")]
  .filter((item) => !item.parentElement.closest(".finding"));
let texts = null;  // in small letters; made when it is first asked for

function search(words) {
  texts ??= items.map((item) => item.textContent.toLowerCase());
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  let count = 0;
  items.forEach((item, i) => {
    const fits = wanted.every((word) => texts[i].includes(word));
    item.hidden = !fits;
    count += fits ? 1 : 0;
  });
  for (const part of document.querySelectorAll("main .part")) {
    const own = items.filter((item) => part.contains(item));
    part.hidden = own.length > 0 && own.every((item) => item.hidden);
  }
  matches.textContent = wanted.length === 0 ? "" : count === 0 ? "no match" : `${count} of ${items.length}`;
}

function findings() {
  return [...document.querySelectorAll("main .finding")].filter((one) => one.offsetParent !== null);
}

function step(by) {
  const all = findings();
  if (all.length === 0) return;
  const at = all.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1);
  all[next].focus({ preventScroll: true });
  all[next].scrollIntoView({ block: "start" });
}

async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

const lanes = document.getElementById("lanes");
lanes?.addEventListener("toggle", async () => {
  if (!lanes.open || lanes.querySelector("iframe")) return;
  const frame = document.createElement("iframe");
  frame.title = "lanes of the run";
  lanes.append(frame);
  frame.srcdoc = await unpacked(document.getElementById("lanes-page").textContent.trim());
});

function show_keys(is_shown) {
  keys.hidden = !is_shown;
  if (!is_shown || keys.firstChild) return;
  const list = document.createElement("dl");
  for (const [key, text] of kKeys) {
    list.append(Object.assign(document.createElement("dt"), { textContent: key }),
                Object.assign(document.createElement("dd"), { textContent: text }));
  }
  keys.append(list);
}

query.addEventListener("input", () => search(query.value));
document.getElementById("help").addEventListener("click", () => show_keys(keys.hidden));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    query.value = "";
    search("");
    query.blur();
    show_keys(false);
    return;
  }
  if (event.target === query) return;
  const actions = {
    "/": () => query.focus(), "?": () => show_keys(keys.hidden), j: () => step(1), k: () => step(-1),
    o: () => { if (lanes) { lanes.open = !lanes.open; lanes.scrollIntoView({ block: "start" }); } },
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
window.addEventListener("beforeprint", () => document.querySelectorAll("main details:not(#lanes)").forEach((one) => (one.open = true)));
document.documentElement.dataset.items = String(items.length);
document.documentElement.dataset.readyMs = String(Math.round(performance.now()));
