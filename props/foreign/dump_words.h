#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "props/foreign/rank_dump.h"
#include "props/replay/diagnosis.h"

namespace zeroproof {

inline constexpr std::string_view kSameSequenceRule =
    "P45 collective.same_sequence_on_all_ranks: all ranks issue the same sequence of (operation, "
    "group, dtype, size)";

// "group 3", "group 3 (EXPERT_MODEL_PARALLEL_GROUP)"; PyTorch's default descriptions are left out.
std::string group_words(std::string_view name, std::string_view desc);

// "all_reduce of sizes [[4]]", "send 0->1 of sizes [[4]]".
std::string operation_words(const DumpedCollective& one);

// "all_reduce number 4 of group 0".
std::string place_words(const DumpedCollective& one);

DiagnosisMoment dump_moment(const RankDump& dump, const DumpedCollective& one, bool is_bad);

// "rank 1 has", "ranks 0-2 have".
std::string ranks_with_verb(const std::vector<std::int32_t>& ranks, std::string_view one,
                            std::string_view many);

}  // namespace zeroproof
