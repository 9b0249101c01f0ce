#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "props/foreign/dump_compare.h"
#include "props/replay/diagnosis.h"
#include "props/replay/what_if.h"
#include "props/report/palette.h"

namespace zeroproof {

// What a replay says beside its table: diagnosis, dumps of other formats, what another policy would
// have done.
struct ReplayAnswers {
  std::vector<Diagnosis> diagnosis;  // of hooktraces and dumps
  DumpReport dumps;
  std::vector<WhatIfReport> what_if;  // one a trace, with --policy
};

// The block "diagnosis": for each entry what, order, rule and what to look at. Empty without
// entries. No line is longer than `columns`, except for a long name; at most `lines_max` lines, the
// first entries in full.
std::string diagnosis_text(const std::vector<Diagnosis>& all, std::size_t columns,
                           std::size_t lines_max, const Palette& palette);

// One line a dump; of many dumps a line a format.
std::string dumps_text(const DumpReport& report, const Palette& palette);

// What the policy would have done, a paragraph a trace.
std::string what_if_text(const std::vector<WhatIfReport>& all, const Palette& palette);

}  // namespace zeroproof
