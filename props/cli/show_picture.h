#pragma once

#include <string>
#include <vector>

#include "props/cli/event_filter.h"
#include "props/cli/verb.h"
#include "props/report/picture/picture.h"

namespace zeroproof {

// The forms of `show` that need the whole run at once: several traces, a folder, a schedule, and
// every page and chart.
class ShowPicture {
 public:
  void declare(Flags& flags);

  // One trace for the terminal is none.
  bool is_meant(const std::vector<std::string>& words) const;

  Result<VerbResult> run(const std::vector<std::string>& words, const EventFilter& filter,
                         bool shows_all, Session& session);

 private:
  struct Shown {
    Picture picture;
    ExitCode code = ExitCode::held;
  };

  Result<Shown> show_traces(const std::vector<std::string>& words, const EventFilter& filter) const;
  static Result<Shown> show_schedule(const std::string& word, const Session& session);
  static Result<Shown> show_engine_schedule(const std::string& word, const Session& session);
  static Result<Shown> show_common_model(const std::string& word);
  static Result<Shown> show_program(const std::string& path, const Session& session);
  Result<VerbResult> write(Shown shown, const std::string& form, bool shows_all,
                           Session& session) const;

  bool is_html_ = false;
  bool is_svg_ = false;
};

}  // namespace zeroproof
