#pragma once

#include <cstdint>
#include <string>

#include "props/cli/flags.h"
#include "props/report/palette.h"
#include "props/report/progress.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// The flags that every verb has.
struct CommonFlags {
  std::uint64_t seed = 0;
  bool wants_json = false;
  bool wants_help = false;
  std::string junit_path;        // empty: no file
  std::string sarif_path;        // the same
  bool has_annotations = false;  // on stderr, as GitHub reads them
  std::string out_dir;           // empty: no files
  ColorChoice color = ColorChoice::automatic;
  ProgressMode progress = ProgressMode::automatic;
};

// Declares them and turns their words into values after parsing.
class CommonFlagWords {
 public:
  void declare(Flags& flags);
  Result<CommonFlags> values() const;

 private:
  CommonFlags given_;  // the switches
  std::string seed_ = "0";
  std::string color_ = "auto";
  std::string progress_ = "auto";
  std::string annotations_ = "auto";
};

// A count with an optional k, M or G: "250", "10k", "0x1f". `what` starts the error.
Result<std::uint64_t> parse_count(std::string_view text, std::string_view what);

}  // namespace zeroproof
