#pragma once

#include <string_view>
#include <vector>

#include "model/check.h"
#include "props/foreign/dump_compare.h"
#include "props/foreign/dump_reader.h"

namespace zeroproof {

// Everything that looks at a flight-recorder dump or Kineto trace from outside, over any bytes: a
// dump, compared with itself, or an error of one line.
inline void read_any_dump(std::string_view bytes) {
  const auto dump = read_rank_dump_bytes(bytes, "input_rank_0");
  if (!dump) {
    const std::string& text = dump.error().text;
    ZP_CHECK(!text.empty() && text.find('\n') == std::string::npos, "an error is one line");
    return;
  }
  std::vector<RankDump> ranks = {*dump, *dump};
  ranks[1].rank = ranks[0].rank + 1;
  const DumpReport report = compare_dumps(std::move(ranks));
  ZP_CHECK(report.dumps.size() == 2, "both ranks are reported");
}

}  // namespace zeroproof
