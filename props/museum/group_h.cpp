// Group H of the bug catalogue: bookkeeping, lifecycle, cost.
#include <array>

#include "props/museum/entry.h"
#include "props/museum/policies.h"

namespace zeroproof::museum {
namespace {

const std::array kGroup = std::to_array<Entry>({
    {.id = "H01",
     .fault = "a flushed bucket keeps its count of elements",
     .properties = "R10 P43 R1",
     .plant = planted("H01"_bug)},
    {.id = "H02",
     .fault = "oversized gradients are remembered for a path that never comes",
     .properties = "R12",
     .plant = planted("H02"_bug)},
    {.id = "H04",
     .fault = "every hook does work for all parameters",
     .properties = "R11",
     .plant = planted("H04"_bug)},
    {.id = "H08",
     .fault = "an empty bucket is reduced",
     .properties = "R10 R1",
     .plant = planted("H08"_bug)},
    {.id = "H10",
     .fault = "parameters without elements go into buckets",
     .properties = "P51 R1",
     .plant = planted("H10"_bug)},
    {.id = "H11",
     .fault = "nothing is cleaned up behind a backward that throws",
     .properties = "P11 P4 P5 P12 R1 R7 P63 P74",
     .quirks = "h1"},
    {.id = "H12a",
     .fault = "a backward that throws leaves its flags set",
     .properties = "P7 P1 R7 P26 P12 R1",
     .plant = planted("H12a"_bug)},
    {.id = "H12b",
     .fault = "a backward that throws runs its epilogue",
     .properties = "P26 R7 P27 P2 P1 P10 P49 P11 R1",
     .plant = planted("H12b"_bug)},
    {.id = "H14a",
     .fault = "with overlap a coalesced block forgets its reduction",
     .properties = "P26 P34 P52 R7",
     .plant = planted("H14a"_bug)},
    {.id = "H14b",
     .fault = "a coalesced block counts as a later micro-step",
     .properties = "P26 P34 R7 P41",
     .plant = planted("H14b"_bug)},
    {.id = "H07",
     .fault = "module buffers are sent in every micro-batch of a window",
     .properties = "R10",
     .plant = planted("H07"_bug)},
    {.id = "H16",
     .fault = "a hook divides by the size of a bucket",
     .properties = "R1",
     .plant = planted("H16"_bug)},
    {.id = "H05",
     .fault = "a graph is kept for the backward of every forward, and some have none",
     .properties = "P81 P84 P63 R12",
     .plant = planted("H05"_bug)},
    {.id = "H13",
     .fault = "a lock around every backward does not let its owner in again",
     .properties = "R1",
     .plant = {.decorate_policy = lock_backwards}},
    {.id = "H03", .reason = "an engine's parameters are given to no second engine after it"},
    {.id = "H06", .reason = "no graph compiler: reduction targets are made in each step"},
    {.id = "H09", .reason = "no graph compiler: the mode does not switch at run time"},
    {.id = "H15", .reason = "no graph compiler: engines share no frames"},
    {.id = "H17", .reason = "a checkpoint's context is the model's, not the engine's"},
});

}  // namespace

std::span<const Entry> group_h() {
  return kGroup;
}

}  // namespace zeroproof::museum
