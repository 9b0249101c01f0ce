#include "tests/tidy/rules.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <tuple>

namespace zeroproof::tidy {

Findings check_all(const Tree& tree) {
  Findings all;
  for (const auto check : {check_includes, check_bans, check_sizes, check_text, check_names}) {
    const Findings found = check(tree);
    all.insert(all.end(), found.begin(), found.end());
  }
  std::ranges::sort(all, {}, [](const Finding& f) { return std::tie(f.path, f.line, f.rule); });
  return all;
}

std::vector<Allowance> load_allowances(const std::filesystem::path& file) {
  std::vector<Allowance> allowances;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#') continue;
    Allowance allowance;
    std::istringstream words(line);
    words >> allowance.rule >> allowance.path;
    std::getline(words >> std::ws, allowance.reason);
    allowances.push_back(std::move(allowance));
  }
  return allowances;
}

Findings without_allowed(const Findings& findings, const std::vector<Allowance>& allowances) {
  const auto covers = [](const Allowance& a, const Finding& f) {
    return a.rule == f.rule && a.path == f.path && !a.reason.empty();
  };
  Findings left;
  for (const Finding& finding : findings) {
    if (std::ranges::none_of(allowances, [&](const auto& a) { return covers(a, finding); })) {
      left.push_back(finding);
    }
  }
  for (const Allowance& allowance : allowances) {
    if (std::ranges::any_of(findings, [&](const auto& f) { return covers(allowance, f); }))
      continue;
    left.push_back({"tests/tidy/allowances.txt", 1, "allowance",
                    allowance.rule + " " + allowance.path + " covers nothing or gives no reason"});
  }
  return left;
}

std::string to_text(const Findings& findings) {
  std::ostringstream text;
  for (const Finding& f : findings) {
    text << f.path << ':' << f.line << ": " << f.rule << ": " << f.detail << '\n';
  }
  return text.str();
}

}  // namespace zeroproof::tidy
