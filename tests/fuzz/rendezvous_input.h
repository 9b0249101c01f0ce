#pragma once

#include <string_view>
#include <vector>

#include "engine/runtime/host/peer_part.h"
#include "model/check.h"
#include "tests/fuzz/messages.h"

namespace zeroproof {

// The first byte says how many ranks there are; then a part of each, as other processes send them.
// Parts that make a collective are run.
inline void run_any_collective(std::string_view bytes) {
  constexpr int kMostRanks = 4;
  if (bytes.empty()) return;
  const int ranks = 1 + static_cast<unsigned char>(bytes.front()) % kMostRanks;
  MessageBytes messages(bytes.substr(1));
  std::vector<host::PeerPart> parts;
  while (!messages.is_over() && static_cast<int>(parts.size()) < ranks) {
    auto part = host::unpacked_part(messages.next(), ranks);
    if (!part) return;
    parts.push_back(std::move(*part));
  }
  if (parts.empty()) return;
  std::vector<const host::Collective*> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(&parts[static_cast<std::size_t>(rank) % parts.size()].collective);
  for (const host::Collective* part : all)
    if (!host::is_same_kind(*all[0], *part)) return;
  std::vector<double> scratch;
  host::run_collective(all, scratch, true);
  const auto again = host::unpacked_part(host::packed_part(*all[0]), ranks);
  ZP_CHECK(again && host::is_same_kind(*all[0], again->collective), "a part travels");
}

}  // namespace zeroproof
