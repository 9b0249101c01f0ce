// Group D of the bug catalogue: global decisions: overflow, non-finite, clip norm.
#include <array>

#include "props/museum/entry.h"

namespace zeroproof::museum {
namespace {

const std::array kGroup = std::to_array<Entry>({
    {.id = "D01",
     .fault = "stage 1 decides about overflow on each rank alone",
     .properties = "R8 P40 P57 R2 R3",
     .plant = planted("D01"_bug)},
    {.id = "D02",
     .fault = "the overflow flag is read before its reduction",
     .properties = "R8 P40 P57 R2 R3",
     .plant = planted("D02"_bug)},
    {.id = "D03",
     .fault = "a rank without elements takes no part in the overflow decision",
     .properties = "R2 R3",
     .plant = planted("D03"_bug)},
    {.id = "D05",
     .fault = "every rank clips by the norm of its own shard",
     .properties = "R9 R7 P40",
     .plant = planted("D05"_bug)},
    {.id = "D04", .reason = "no report names the rank that overflowed"},
});

}  // namespace

std::span<const Entry> group_d() {
  return kGroup;
}

}  // namespace zeroproof::museum
