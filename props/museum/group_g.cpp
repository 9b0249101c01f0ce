// Group G of the bug catalogue: streams, buffer reuse, storage lifetime.
#include <array>

#include "props/museum/entry.h"

namespace zeroproof::museum {
namespace {

const std::array kGroup = std::to_array<Entry>({
    {.id = "G01",
     .fault = "a bucket is filled again while its reduction may still read it",
     .properties = "P47 P46 R7",
     .plant = planted("G01"_bug)},
    {.id = "G02",
     .fault = "a bucket's reset comes before its two buffers take turns",
     .properties = "P47 P46 R7",
     .plant = planted("G02"_bug)},
    {.id = "G03",
     .fault = "each hand-over waits for all that is being reduced",
     .properties = "R20",
     .plant = planted("G03"_bug)},
    {.id = "G04",
     .fault = "what a reduction sends is freed without a word to its stream",
     .properties = "P48 R4",
     .plant = planted("G04"_bug)},
    {.id = "G05",
     .fault = "gradients are packed on two streams, and the reduction waits for one",
     .properties = "P46 R7",
     .plant = planted("G05"_bug)},
    {.id = "G06",
     .fault = "the reduction waits for another stream than the one that makes gradients",
     .properties = "P46 R7",
     .plant = planted("G06"_bug)},
    {.id = "G07",
     .fault = "a hook works on the stream of its registration, for which nobody waits",
     .properties = "P46 R7",
     .plant = planted("G07"_bug)},
    {.id = "G08",
     .fault = "a bucket's contents are cleared when its reduction is launched",
     .properties = "P47 P46 R7",
     .plant = planted("G08"_bug)},
    {.id = "G09",
     .fault = "a gather does not wait for the update before it",
     .properties = "P46 R7 R6",
     .plant = planted("G09"_bug)},
    {.id = "G10",
     .fault = "a gather into the buffer of the one before waits for nobody",
     .properties = "P47 P46 P48 R7 R6",
     .plant = planted("G10"_bug)},
    {.id = "G11",
     .fault = "the first gradient of a bucket is written before the limit is looked at",
     .properties = "P47 P46 R7",
     .plant = planted("G11"_bug)},
    {.id = "G12",
     .fault = "one reduction more than there are buffers may be under way",
     .properties = "P47 P46 R7",
     .plant = planted("G12"_bug)},
    {.id = "G13",
     .fault = "a reduction's result is a part of its input, which is filled again",
     .properties = "P47 P48 P46 R4 R7",
     .plant = planted("G13"_bug)},
    {.id = "G14",
     .fault = "the input of a reduction is freed in the order of another stream",
     .properties = "P48 R4",
     .plant = planted("G14"_bug)},
    {.id = "G15",
     .fault = "of a bucket's gradients the last alone is kept until the reduction is done",
     .properties = "P48 R4",
     .plant = planted("G15"_bug)},
    {.id = "G19",
     .fault = "updated slices are gathered without waiting for the update",
     .properties = "P46 R7",
     .plant = planted("G19"_bug)},
    {.id = "G21",
     .fault = "the hooks of a parameter's owner alone wait for its gather",
     .properties = "R1 P62 R6",
     .plant = planted("G21"_bug)},
    {.id = "G20",
     .fault = "a gather that is driven by hand does not wait for the update before it",
     .properties = "P46 R7 R6",
     .plant = planted("G20"_bug)},
    {.id = "G16",
     .reason = "a reduction's result is copied into the pending sum at once: there is no state to "
               "keep it"},
    {.id = "G17",
     .reason = "the autograd works in step with its caller here, whatever stream a root has"},
    {.id = "G18",
     .reason = "the autograd works in step with its caller here, whatever stream a result has"},
});

}  // namespace

std::span<const Entry> group_g() {
  return kGroup;
}

}  // namespace zeroproof::museum
