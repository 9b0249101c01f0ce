#pragma once

#include <functional>
#include <string>
#include <vector>

#include "zeroproof/model/result.h"

namespace zeroproof::subject {

// A Python that has a release.
struct ReleaseEnvironment {
  std::string python;
  std::string python_path;  // what PYTHONPATH begins with; or empty
};

// Makes environments by a program (recorder/environment.sh).
class EnvironmentMaker {
 public:
  // `package` is deepspeed, megatron-core or torch; `torch` the release of PyTorch for another
  // package, empty for the newest.
  EnvironmentMaker(std::string program, std::string package, std::string torch,
                   std::function<bool()> should_stop)
      : program_(std::move(program)),
        package_(std::move(package)),
        torch_(std::move(torch)),
        should_stop_(std::move(should_stop)) {}

  // "0.18.3..0.19.8": those that the package index has, oldest first; "0.18.9,0.19.8": these.
  Result<std::vector<std::string>> releases(const std::string& range) const;

  // Installs the release where it is not there yet. Code cannot_run.
  Result<ReleaseEnvironment> make(const std::string& release) const;

 private:
  Result<std::vector<std::string>> lines_of(std::vector<std::string> words) const;

  std::string program_;
  std::string package_;
  std::string torch_;
  std::function<bool()> should_stop_;
};

}  // namespace zeroproof::subject
