// Group E of the bug catalogue: collective congruence across ranks.
#include <array>

#include "props/museum/entry.h"
#include "props/museum/seam.h"

namespace zeroproof::museum {
namespace {

const std::array kGroup = std::to_array<Entry>({
    {.id = "E01",
     .fault = "a bucket is packed as its hooks came, which is another order on some ranks",
     .properties = "R3 R2 R1",
     .plant = planted("E01"_bug)},
    {.id = "E02",
     .fault =
         "inside a block that each rank routes its own way, every gradient hook reduces by itself",
     .properties = "R3 R2 R1",
     .plant = planted("E02"_bug)},
    {.id = "E03",
     .fault = "a block's message has the parameters that this rank used, and no others",
     .properties = "R3 R2 R1",
     .plant = planted("E03"_bug),
     .larger =
         "what a rank leaves out is one of two experts, beside the layer that the loss needs"},
    {.id = "E04",
     .fault = "what is ready is reduced in the order of a set, another one on some ranks",
     .properties = "R3 R2 R1",
     .plant = planted("E04"_bug)},
    {.id = "E05",
     .fault = "buckets of several dtypes are reduced in hash order, another one on some ranks",
     .properties = "R3 R2 R1",
     .plant = planted("E05"_bug)},
    {.id = "E06",
     .fault = "a user's list of parameters is gathered as it came, doubles and all",
     .properties = "R3 R2 R1",
     .plant = planted("E06"_bug)},
    {.id = "E08",
     .fault = "what this rank did not use is bucketed behind everything else",
     .properties = "R3 R2 R1",
     .plant = planted("E08"_bug)},
    {.id = "E09",
     .fault = "without a complete trace persistent parameters are released",
     .properties = "R10 P64 P62",
     .plant = planted("E09"_bug)},
    {.id = "E10",
     .fault = "a rank's own data makes one tile, and its gathers, more than the others have",
     .properties = "R3 R2 R1",
     .plant = planted("E10"_bug)},
    {.id = "E11",
     .fault = "a second group meets before a sum on some ranks and behind it on others",
     .properties = "R2 R3 R1",
     .plant = {.decorate_runtime = cross_groups}},
    {.id = "E12",
     .fault = "slices are cut for one group and reduced over another",
     .properties = "R1 R3 R2",
     .plant = planted("E12"_bug)},
    {.id = "E13",
     .fault = "with overlap an idle expert's gradients are left out",
     .properties = "R3 R2 R1",
     .plant = planted("E13"_bug)},
    {.id = "E15",
     .fault = "the check of recorded orders sends lists without their lengths first",
     .properties = "R3 R2 R1",
     .plant = planted("E15"_bug)},
    {.id = "E16",
     .fault = "a coalesced gather takes the dtype of its first parameter for all",
     .properties = "R6 R7 R1",
     .plant = planted("E16"_bug)},
    {.id = "E17",
     .fault = "the gather of every dtype claims the parameters of all",
     .properties = "R1",
     .plant = planted("E17"_bug)},
    {.id = "E18",
     .fault = "gathering ahead dispatches what is under way already",
     .properties = "R1 R10",
     .plant = planted("E18"_bug)},
    {.id = "E19",
     .fault = "gathering ahead goes from the end of the recorded order",
     .properties = "R10 R1",
     .plant = planted("E19"_bug)},
    {.id = "E07", .reason = "no expert parameter groups with a process group of their own"},
    {.id = "E14", .reason = "no pipeline engine: there are no schedules of stages"},
    {.id = "E20",
     .reason = "one thread runs a backward here, so that no root task can go to another one"},
});

}  // namespace

std::span<const Entry> group_e() {
  return kGroup;
}

}  // namespace zeroproof::museum
