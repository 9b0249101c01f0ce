// Colours. The page's own are CSS variables; those of the shapes are here, because a canvas draws
// them. Each is [light, dark].

const kCategoryColors = {
  forward: ["#a9c7ea", "#4a74a8"],
  "graph task": ["#dfe3ea", "#3b4250"],
  node: ["#c3cad6", "#59616f"],
  recompute: ["#f2c879", "#a97a24"],
  hook: ["#86c793", "#3f8a52"],
  "prologue, epilogue": ["#b794e6", "#7d55bd"],
  bucket: ["#e0a880", "#a3683c"],
  collective: ["#6ea6e0", "#2f6cb0"],
  "gather, release": ["#7fcdc9", "#2f8583"],
  manager: ["#d3d7df", "#525a68"],
  step: ["#ec9dc0", "#b05480"],
  transform: ["#c9cc84", "#7d8035"],
  other: ["#c8c2bb", "#6a645c"],
};

const kPage = {
  light: {
    text: "#1c2430", faint: "#6b7685", line: "#e3e7ed", lane: "#ffffff", head: "#f3f5f8",
    bad: "#d3261b", latent: "#c77700", select: "#1257d6", grid: "#eef1f5", dim: 0.16,
  },
  dark: {
    text: "#e7ebf1", faint: "#8f9bab", line: "#2b313b", lane: "#171a20", head: "#1f242c",
    bad: "#ff6257", latent: "#f0a93b", select: "#7db0ff", grid: "#20252d", dim: 0.16,
  },
};

class Theme {
  constructor(name) {
    this.name = name;
    this.page = kPage[name];
    const column = name === "dark" ? 1 : 0;
    this.fill = (category) => (kCategoryColors[category] || kCategoryColors.other)[column];
    // What is written on a shape.
    this.ink = name === "dark" ? "#f4f6fa" : "#17202b";
  }

  static preferred() {
    return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
}
