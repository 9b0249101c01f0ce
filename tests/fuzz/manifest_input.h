#pragma once

#include <string>
#include <string_view>

#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/shard_blocks.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/checkpoint/tensor_parallel.h"
#include "model/check.h"

namespace zeroproof {

// Cuts a small tensor by each rule, as a load would.
inline void cut_by_rules_of(const Manifest& manifest) {
  const FullTensor whole{"w", {6, 2}, std::vector<double>(12, 1.0)};
  for (const auto& [name, rule] : manifest.rules)
    for (const int size : {1, 2, 3})
      for (int rank = 0; rank < size; ++rank) {
        const auto part = cut_tensor(whole, rule, {{rank, size}, {0, 1}}, {});
        if (!part) continue;
        const FullTensor& cut = part->tensor;
        ZP_CHECK(numel(cut.sizes) == static_cast<std::int64_t>(cut.values.size()),
                 "a part is as large as its shape");
      }
}

// Files of a checkpoint, of any bytes: as they are, and with the right checksum.
inline void read_any_checkpoint_file(std::string_view bytes) {
  const auto is_line = [](const Error& error) {
    return !error.text.empty() && error.text.find('\n') == std::string::npos;
  };
  const std::string line(bytes.substr(0, bytes.find('\n')));
  for (const std::string& text : {std::string(bytes), sealed(line)}) {
    const auto manifest = parse_manifest(text, "input");
    if (manifest) {
      const auto again = parse_manifest(manifest_text(*manifest), "input");
      ZP_CHECK(again && again->rules == manifest->rules, "a manifest can be written again");
      cut_by_rules_of(*manifest);
    } else {
      ZP_CHECK(is_line(manifest.error()), "an error is one line");
    }
    const auto part = parse_part(text, "input");
    ZP_CHECK(part || is_line(part.error()), "an error is one line");
    const auto shards = parse_shard_part(text, "input");
    ZP_CHECK(shards || is_line(shards.error()), "an error is one line");
    if (shards) (void)ShardIndex::make({*shards, *shards}, {}, "input");
    const auto latest = parse_latest(text, "input");
    ZP_CHECK(latest || is_line(latest.error()), "an error is one line");
  }
  const auto tensor = parse_tensor(bytes, "input");
  ZP_CHECK(tensor || is_line(tensor.error()), "an error is one line");
}

}  // namespace zeroproof
