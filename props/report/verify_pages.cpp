#include "props/report/verify_pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "props/exploration_status.h"
#include "props/registry.h"
#include "props/report/html.h"
#include "props/report/page/report_page.h"
#include "props/report/picture/pictures.h"
#include "props/report/replay_findings.h"
#include "props/report/svg.h"
#include "props/report/text.h"
#include "props/report/verify_parts.h"
#include "props/report/verify_report.h"
#include "props/report/web_files.h"

namespace zeroproof {
namespace {

std::string escaped(std::string_view text) {
  return escape_html(visible(text));
}

// "findings/S2-deepspeed-0.18.3-graph_task_callback-any_topological-N4.html"
std::string path_of(const ExplorationOptions& options) {
  return fmt::format("findings/{}-{}-{}-{}-N{}.html",
                     std::filesystem::path(options.scenario).stem().string(), options.policy,
                     policy_mode_name(options.mode), order_model_name(options.order_model),
                     options.params);
}

std::string page_settings(const ExplorationOptions& options) {
  return fmt::format("{}, {}, N={}, {}", policy_mode_name(options.mode),
                     order_model_name(options.order_model), options.params, options.scheduler);
}

std::string finding_section(const ExplorationReport& report, const ExplorationFinding& finding) {
  const std::string schedule = schedule_text(finding.schedule);
  return fmt::format(
      "<section class=\"finding\" tabindex=\"-1\" id=\"{0}\">\n<h3><b>{0}</b> {1}</h3>\n"
      "<p class=\"faint\">{2}</p>\n<p>{3}</p>\n<p class=\"faint\">{4} executions failed; "
      "{5} events</p>\n{6}<pre>zeroproof replay {7}\nzeroproof show {7} --html --out {8}.html"
      "</pre>\n</section>\n",
      finding.property->number, escaped(finding.property->id), escaped(finding.property->statement),
      escaped(finding.finding.text), finding.failing_executions, finding.events.size(),
      picture_svg(finding_picture(report, finding)), escaped(schedule),
      escaped(report.options.scenario));
}

// All findings of one exploration.
ReportPage exploration_page(const ExplorationReport& report) {
  const ExplorationOptions& options = report.options;
  ReportFrame frame{.title = fmt::format("{} under {}", options.scenario, options.policy)};
  frame.asked = fmt::format("zeroproof explore {} --policy {}", options.scenario, options.policy);
  frame.verdict = fmt::format("{} falsified", report.findings.size());
  frame.mood = ReportMood::bad;
  frame.summary = fmt::format(
      "{}; {}; {} executions{}", report.title, page_settings(options), report.executions,
      report.linear_extensions ? ", " + report.linear_extensions->text() + " orders" : "");
  frame.home = "../index.html";
  std::string sections;
  for (const ExplorationFinding& finding : report.findings)
    sections += finding_section(report, finding);
  frame.sections.push_back({"Findings", sections});
  return {path_of(options), report_page(frame)};
}

// "held" or the falsified numbers, each a link to its chart.
std::string cell(const ExplorationReport& report) {
  if (report.findings.empty()) {
    return fmt::format("<span class=\"{}\">{}</span>", report.has_held() ? "held" : "rule",
                       exploration_status_name(status_of(report)));
  }
  std::string links;
  for (const ExplorationFinding& finding : report.findings) {
    links += fmt::format("<a class=\"rule\" href=\"{}#{}\" title=\"{}\">{}</a>",
                         escaped(path_of(report.options)), finding.property->number,
                         escaped(finding.property->id), finding.property->number);
  }
  return links;
}

class Index {
 public:
  explicit Index(const VerifyReport& report) : report_(report), parts_(verify_parts(report)) {}

  std::vector<ReportPage> pages() {
    add_explorations();
    add_traces();
    ReportFrame frame = this->frame();
    const auto add = [&](std::string title, std::string html) {
      frame.sections.push_back({std::move(title), std::move(html)});
    };
    add("The first cause", first_cause());
    add("Parts", parts());
    add("exact did not hold", exact_failures());
    add("Properties that upstream breaks", legend());
    for (const ExplorationTable& table : report_.upstream)
      if (!table.empty()) add("Hook policies " + order_words(table), upstream_table(table));
    add("Traces with findings", traces_table());
    add("For other tools", files());
    pages_.insert(pages_.begin(), {"index.html", report_page(frame)});
    return std::move(pages_);
  }

 private:
  void add_explorations() {
    const auto add = [&](const ExplorationReport& one) {
      if (!one.findings.empty()) pages_.push_back(exploration_page(one));
      for (const ExplorationFinding& finding : one.findings) properties_.insert(finding.property);
    };
    for (const ExplorationTable& table : report_.upstream)
      std::for_each(table.begin(), table.end(), add);
    std::for_each(report_.exact.begin(), report_.exact.end(), add);
  }

  // A trace whose page cannot be made is listed without a link.
  void add_traces() {
    for (const TraceReplay& trace : report_.replay.traces) {
      if (trace.is_ok()) continue;
      const LocatedFindings findings = findings_of(trace);
      for (const LocatedFinding& finding : findings)
        if (const Property* broken = find_property(finding.number)) properties_.insert(broken);
      const auto picture = trace_picture({trace.path}, findings, {});
      if (!picture) continue;
      std::string name = std::filesystem::path(trace.path).filename().string();
      name = name.substr(0, name.find('.'));
      const std::string path = fmt::format("traces/{}.html", name);
      pages_.push_back({path, picture_html(*picture)});
      page_of_trace_[trace.path] = path;
    }
  }

  static LocatedFindings findings_of(const TraceReplay& trace) {
    ReplayReport one;
    one.traces.push_back(trace);
    return located_findings(one);
  }

  ReportFrame frame() const {
    const bool is_good = report_.has_held();
    const char* verdict = report_.is_interrupted ? "interrupted" : is_good ? "held" : "FALSIFIED";
    return {.title = "zeroproof verify",
            .asked = fmt::format("zeroproof verify{} --seed {}",
                                 report_.options.is_quick ? " --quick" : "", report_.options.seed),
            .verdict = verdict,
            .mood = mood_of(is_good),
            .summary = summary()};
  }

  std::string summary() const {
    const auto good = std::ranges::count_if(parts_, &VerifyPart::is_good);
    return fmt::format("{} of {} parts hold{}{}", good, parts_.size(),
                       report_.options.is_quick ? ", each on a small sample" : "",
                       report_.is_interrupted ? "; interrupted" : "");
  }

  // The first thing that makes it fail.
  std::string first_cause() const {
    const LocatedFindings findings = located_findings(report_);
    if (findings.empty()) return {};
    const LocatedFinding& first = findings.front();
    return fmt::format(
        "<section class=\"finding\" tabindex=\"-1\">\n<h3>{}</h3>\n<p>{}</p>\n<p "
        "class=\"faint\">{}</p>\n<p>reproduce: <code>zeroproof {}</code></p>\n</section>\n",
        escaped(first.rule), escaped(first.text), escaped(first.statement),
        escaped(first.reproduce));
  }

  std::string parts() const {
    std::string rows;
    for (const VerifyPart& part : parts_) {
      rows += fmt::format("<tr><td>{}</td><td><b>{}</b></td><td>{}</td></tr>\n",
                          html_chip(part.verdict, mood_of(part.is_good())), escaped(part.name),
                          escaped(part.text));
      for (const auto& [word, text] : part.failures)
        rows += fmt::format("<tr><td></td><td colspan=\"2\"><code>{} {}</code></td></tr>\n",
                            escaped(word), escaped(text));
    }
    return "<div class=\"card parts\"><table>\n" + rows + "</table></div>\n";
  }

  static ReportMood mood_of(bool is_good) { return is_good ? ReportMood::good : ReportMood::bad; }

  // "in PyTorch's order, with the final callback"
  static std::string order_words(const ExplorationTable& table) {
    const ExplorationOptions& options = table.front().options;
    return fmt::format("{}, {}",
                       options.order_model == OrderModel::faithful ? "in PyTorch's order"
                                                                   : "in any topological order",
                       options.mode == PolicyMode::count_fallback ? "without a callback"
                                                                  : "with the final callback");
  }

  // Scenarios down, policies across, ours last where it was explored in the same way.
  std::string upstream_table(const ExplorationTable& table) const {
    if (table.empty()) return "";
    const ExplorationOptions& setup = table.front().options;
    std::vector<std::string> policies;
    std::map<std::string, std::map<std::string, const ExplorationReport*>> cells;
    std::vector<const ExplorationReport*> scenarios;
    const auto place = [&](const ExplorationReport& one) {
      const ExplorationOptions& options = one.options;
      if (std::find(policies.begin(), policies.end(), options.policy) == policies.end()) {
        policies.push_back(options.policy);
      }
      if (!cells.contains(options.scenario)) scenarios.push_back(&one);
      cells[options.scenario][options.policy] = &one;
    };
    for (const ExplorationReport& one : table) place(one);
    for (const ExplorationReport& one : report_.exact) {
      const bool is_alike = one.options.mode == setup.mode && one.options.params == setup.params &&
                            one.options.order_model == setup.order_model;
      if (is_alike) place(one);
    }
    std::string rows = "<tr><th>scenario</th><th class=\"number\">orders</th>";
    for (const std::string& policy : policies) rows += fmt::format("<th>{}</th>", escaped(policy));
    rows += "</tr>\n";
    for (const ExplorationReport* scenario : scenarios)
      rows += table_row(*scenario, cells, policies);
    return fmt::format(
        "<p class=\"faint\">{}. A number is a property that the policy breaks, and leads to its "
        "shortest order.</p>\n<div class=\"card\"><table>\n{}</table></div>\n",
        escaped(page_settings(setup)), rows);
  }

  static std::string table_row(
      const ExplorationReport& scenario,
      const std::map<std::string, std::map<std::string, const ExplorationReport*>>& cells,
      const std::vector<std::string>& policies) {
    const std::string& id = scenario.options.scenario;
    std::string row = fmt::format(
        "<tr><td class=\"scenario\"><b>{}</b> <small>{}</small></td><td class=\"number\">{}</td>",
        escaped(id), escaped(scenario.title),
        scenario.linear_extensions ? scenario.linear_extensions->text() : "?");
    for (const std::string& policy : policies) {
      const auto found = cells.at(id).find(policy);
      row += fmt::format("<td>{}</td>", found == cells.at(id).end() ? "-" : cell(*found->second));
    }
    return row + "</tr>\n";
  }

  std::string legend() const {
    std::string rows;
    for (const Property* property : properties_) {
      rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", property->number,
                          escaped(property->id), escaped(property->statement));
    }
    if (rows.empty()) return "";
    return "<div class=\"card\"><table>\n" + rows + "</table></div>\n";
  }

  std::string exact_failures() const {
    std::string rows;
    for (const ExplorationReport& one : report_.exact) {
      if (status_of(one) == ExplorationStatus::held) continue;
      rows += fmt::format("<tr><td><b>{}</b></td><td>{}</td><td>{}</td></tr>\n",
                          escaped(one.options.scenario), page_settings(one.options), cell(one));
    }
    if (rows.empty()) return "";
    return "<div class=\"card\"><table>\n" + rows + "</table></div>\n";
  }

  // P4 before P11.
  using Numbers = std::set<std::pair<std::size_t, std::string>>;

  static std::string joined(const Numbers& numbers) {
    std::string text;
    for (const auto& [size, number] : numbers) text += (text.empty() ? "" : " ") + number;
    return text;
  }

  std::string traces_table() const {
    std::string rows;
    for (const TraceReplay& trace : report_.replay.traces) {
      if (trace.is_ok()) continue;
      Numbers numbers;
      for (const LocatedFinding& finding : findings_of(trace)) {
        if (finding.level != FindingLevel::error) continue;
        const std::string& rule = finding.number.empty() ? finding.rule : finding.number;
        numbers.emplace(rule.size(), rule);
      }
      const auto page = page_of_trace_.find(trace.path);
      const std::string name = escaped(std::filesystem::path(trace.path).filename().string());
      rows +=
          fmt::format("<tr><td>{}</td><td>{}</td><td><code>zeroproof replay {}</code></td></tr>\n",
                      page == page_of_trace_.end()
                          ? name
                          : fmt::format("<a href=\"{}\">{}</a>", escaped(page->second), name),
                      joined(numbers), escaped(trace.path));
    }
    if (rows.empty()) return "";
    return "<p class=\"faint\">Upstream's known defects, as "
           "recorded; a "
           "new one, or one that vanishes, fails the part <b>replay</b>.</p>\n<div "
           "class=\"card\"><table>\n"
           "<tr><th>trace</th><th>properties</th><th>again</th></tr>\n" +
           rows + "</table></div>\n";
  }

  static std::string files() {
    return "<p><a href=\"report.json\">report.json</a> · "
           "<a href=\"junit.xml\">junit.xml</a> · <a href=\"report.sarif\">report.sarif</a> · "
           "<a href=\"report.md\">report.md</a></p>\n";
  }

  const VerifyReport& report_;
  const std::vector<VerifyPart> parts_;
  std::vector<ReportPage> pages_;
  std::set<const Property*> properties_;  // one array: addresses are in catalogue order
  std::map<std::string, std::string> page_of_trace_;
};

}  // namespace

std::vector<ReportPage> verify_pages(const VerifyReport& report) {
  return Index(report).pages();
}

}  // namespace zeroproof
