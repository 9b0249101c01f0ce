#pragma once

#include <string>
#include <string_view>

#include "engine/runtime/process/byte_strings.h"
#include "engine/runtime/process/store_keeper.h"
#include "model/check.h"
#include "tests/fuzz/messages.h"

namespace zeroproof {

// Messages of two callers to a store, one of which has said the token, and the same messages as
// answers to a member. A stranger reads and changes no value.
inline void ask_any_store(std::string_view bytes) {
  constexpr int kRanks = 3;
  StoreKeeper keeper({.rank = 0, .size = kRanks, .run_id = "r"}, "the token of a test");
  StoreKeeper::Caller member;
  StoreKeeper::Caller stranger;
  ZP_CHECK(keeper.answer(member, pack({"hello", "the token of a test"}))->front() == "ok",
           "the token is right");
  keeper.end();  // or it would wait for keys that are never set
  MessageBytes messages(bytes);
  while (!messages.is_over()) {
    const std::string_view message = messages.next();
    const auto told = keeper.answer(stranger, message);
    ZP_CHECK(!told || told->front() == "refused", "a stranger is refused");
    ZP_CHECK(!stranger.is_known && stranger.rank == -1, "a stranger stays one");
    const auto answer = keeper.answer(member, message);
    ZP_CHECK(!answer || !answer->empty(), "an answer says something");
    if (answer) ZP_CHECK(unpack(pack(*answer)) == *answer, "an answer travels");
    if (const auto as_answer = unpack(message)) {
      const auto states = presences_in(*as_answer, kRanks);
      ZP_CHECK(!states || states->size() == kRanks, "a state for each rank");
    }
  }
  keeper.note_end(member);
  const auto states = presences_in(*keeper.answer(member, pack({"presences"})), kRanks);
  ZP_CHECK(states.has_value(), "a store's own answer is one");
}

}  // namespace zeroproof
