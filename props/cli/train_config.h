#pragma once

#include <string>

#include "props/cli/flags.h"
#include "props/cli/verb.h"
#include "props/report/config_report.h"
#include "props/train/train_cell.h"

namespace zeroproof {

// Flags whose values stand above those of the document.
struct GivenFlags {
  bool has_stage = false;
  bool has_dtype = false;
};

// --ds-config and --strict-config: what they make of a cell, and what is reported of it.
class ConfigFlags {
 public:
  void declare(Flags& flags);

  // Puts the configuration into the cell, whose ranks are known. An error begins with the path.
  Result<void> take(train::TrainCell& cell, GivenFlags given);
  // Notes what the cell's scenario replaces; an error where scenario and configuration do not fit.
  Result<void> fit(const train::TrainCell& cell);

  std::string text() const { return config_text(report_); }
  std::string in_json(const std::string& document) const {
    return with_config_json(document, report_);
  }
  // The same result, and after its text and in its JSON what is reported. Must outlive the result.
  VerbResult in_report(VerbResult result) const;
  // " --ds-config FILE" of a command that repeats this one, or empty.
  std::string flag() const;

 private:
  std::string path_;
  bool is_strict_ = false;
  ConfigReport report_;
};

}  // namespace zeroproof
