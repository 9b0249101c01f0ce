#include "props/replay/uncaught.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace zeroproof {
namespace {

// How PyTorch, gloo and NCCL say that another rank has gone or does not come.
constexpr std::array<std::string_view, 10> kPeerWords = {"Connection closed by peer",
                                                         "Connection reset by peer",
                                                         "Connection refused",
                                                         "Broken pipe",
                                                         "Timed out",
                                                         "timed out",
                                                         "Watchdog",
                                                         "NCCL error",
                                                         "ncclRemoteError",
                                                         "Socket Timeout"};

bool is_of_peers(const SeenException& seen) {
  return seen.type == "DistBackendError" || seen.type == "DistNetworkError" ||
         std::any_of(kPeerWords.begin(), kPeerWords.end(), [&](std::string_view word) {
           return seen.message.find(word) != std::string::npos;
         });
}

// Ended on purpose, or by the person in front of it.
bool is_meant(const SeenException& seen) {
  return seen.type == "SystemExit" || seen.type == "KeyboardInterrupt";
}

// The first words of a message say what it is about.
std::string beginning_of(const std::string& message) {
  constexpr std::size_t kLengthMax = 160;
  const bool is_cut = message.size() > kLengthMax;
  return fmt::format("{}{}", std::string_view(message).substr(0, kLengthMax), is_cut ? "..." : "");
}

}  // namespace

std::optional<Draft> uncaught_exception(const TraceStory& story) {
  if (story.exceptions.empty()) return std::nullopt;
  const SeenException& seen = story.exceptions.back();
  // Before hooktrace 1.1 the recorder wrote an exception only as it ended a job.
  const bool is_last = story.facts.is_of_recorder && !story.facts.tells_closures &&
                       story.ends_by_exception && story.is_complete;
  if (!seen.is_uncaught && !is_last) return std::nullopt;
  Diagnosis found{.kind = "process.exception",
                  .gravity = is_meant(seen) ? Gravity::note : Gravity::defect,
                  .ranks = {story.rank}};
  found.what = fmt::format("an uncaught exception ended the process: {}{}{}", seen.type,
                           seen.message.empty() ? "" : ": ", beginning_of(seen.message));
  found.order = story.last;
  if (!found.order.empty()) found.order.back().is_bad = true;
  found.rule = "a job ends by itself, with exit code 0";
  found.look_at = "the traceback in the log of this rank; the order below shows what it did last";
  Draft draft{.run = story.run, .diagnosis = std::move(found), .lc = seen.lc};
  draft.is_of_peers = is_of_peers(seen);
  return draft;
}

}  // namespace zeroproof
