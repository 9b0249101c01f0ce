// Group C of the bug catalogue: scaling, norm, clipping.
#include <array>

#include "props/museum/entry.h"

namespace zeroproof::museum {
namespace {

const std::array kGroup = std::to_array<Entry>({
    {.id = "C01",
     .fault = "scale_wrt_gas off divides all the same",
     .properties = "P26 P20 R7",
     .plant = planted("C01"_bug)},
    {.id = "C02",
     .fault = "the accumulation steps divide at each output instead of at the loss",
     .properties = "P26 P27 R7",
     .quirks = "h8"},
    {.id = "C06",
     .fault = "two callers divide by the accumulation steps",
     .properties = "P26 P27 R7",
     .plant = planted("C06"_bug)},
    {.id = "C07",
     .fault = "stage 0 in bf16 divides by a loss scale that never multiplied",
     .properties = "R7",
     .plant = planted("C07"_bug)},
    {.id = "C08",
     .fault = "the average is taken of the accumulator and not of the message",
     .properties = "P26 R7 R9",
     .plant = planted("C08"_bug)},
    {.id = "C11",
     .fault = "the squared norm is summed over the world once more",
     .properties = "R9 R7",
     .plant = planted("C11"_bug)},
    {.id = "C12",
     .fault = "the norm is unscaled by the updated scale",
     .properties = "R9 R7 P59",
     .quirks = "h6"},
    {.id = "C13",
     .fault = "partial squared norms are averaged",
     .properties = "R9 R7",
     .plant = planted("C13"_bug)},
    {.id = "C14",
     .fault = "clipping works the other way round",
     .properties = "R7",
     .plant = planted("C14"_bug)},
    {.id = "C17",
     .fault = "nothing is clipped in bf16",
     .properties = "R7",
     .plant = planted("C17"_bug)},
    {.id = "C18",
     .fault = "an offloaded parameter that never fired is refused",
     .properties = "R1",
     .plant = planted("C18"_bug)},
    {.id = "C03",
     .fault = "every engine that a backward reaches divides by the accumulation steps",
     .properties = "P26 P27 R7",
     .plant = planted("C03"_bug)},
    {.id = "C04",
     .fault = "what experts have is divided before it is packed, and again with the rest",
     .properties = "P26 R7 R9",
     .plant = planted("C04"_bug)},
    {.id = "C05",
     .fault = "what experts have is divided by the ranks that share them, and not by all",
     .properties = "P26 R7 R9",
     .plant = planted("C05"_bug)},
    {.id = "C09",
     .fault = "what lies outside the bucket is never divided",
     .properties = "P26 R7 R9",
     .plant = planted("C09"_bug)},
    {.id = "C19",
     .fault = "a tile differentiates its own mean, where forward gives the mean of all",
     .properties = "P26 P37 R7",
     .plant = {.tile_weight = 2.0}},
    {.id = "C10", .reason = "no tensor-parallel parameters in the generated models"},
    {.id = "C15",
     .reason =
         "where nothing looks for overflow, engine and baseline share no rule for infinite norms"},
    {.id = "C16", .reason = "the engine has no setter for gradients between backward and step"},
});

}  // namespace

std::span<const Entry> group_c() {
  return kGroup;
}

}  // namespace zeroproof::museum
