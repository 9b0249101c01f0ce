#include "props/conform/deepspeed_recording.h"

#include <fmt/format.h>

#include <variant>

#include "props/conform/recording.h"
#include "sim/trace/order_token.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

// Calls into an engine and its manager are how it is built, not what it does.
bool is_compared(EventKind kind) {
  return kind != EventKind::engine_call && kind != EventKind::engine_return &&
         kind != EventKind::bhs_call && kind != EventKind::bhs_return;
}

Result<Release> recorded_release(const HeaderRecord& header) {
  const auto text = recorded_version(header, "deepspeed");
  return text ? Release::parse(*text) : Release{};
}

}  // namespace

std::string CollectiveCall::text() const {
  return fmt::format("{} #{} of {}, {} bytes{}", op, sequence, group, bytes,
                     is_async ? ", async" : "");
}

const TensorRecord* DeepspeedRecording::find(std::string_view role, std::size_t nth) const {
  for (const TensorRecord& tensor : tensors)
    if (tensor.role == role && nth-- == 0) return &tensor;
  return nullptr;
}

void take_event(const HookEvent& event, const NameTable& names, DeepspeedRecording& recording) {
  if (!is_compared(event.kind)) return;
  std::string token;
  if (append_order_token(event, names, TokenDetail::engine, token))
    recording.tokens.push_back(std::move(token));
  if (event.kind == EventKind::coll_issue)
    recording.collectives.push_back({.op = std::string(names.text(event.name)),
                                     .group = std::string(names.text(event.group)),
                                     .sequence = event.index,
                                     .bytes = event.bytes,
                                     .is_async = event.is_async});
}

Result<DeepspeedRecording> read_deepspeed_recording(const std::string& path) {
  NameTable names;
  auto reader = TraceReader::open(path, names);
  if (!reader) return tl::unexpected(reader.error());
  DeepspeedRecording recording;
  recording.header = reader->header();
  const auto release = recorded_release(recording.header);
  if (!release) return fail(ErrorCode::unreadable, path + ": " + release.error().text);
  const auto torch = recorded_torch(recording.header);
  if (!torch) return fail(ErrorCode::unreadable, path + ": " + torch.error().text);
  recording.release = *release;
  recording.torch = *torch;
  while (true) {
    const auto record = reader->next();
    if (!record) return tl::unexpected(record.error());
    if (*record == nullptr) break;
    const RecordBody& body = (*record)->body;
    if (const HookEvent* event = (*record)->event()) take_event(*event, names, recording);
    if (const auto* tensor = std::get_if<TensorRecord>(&body)) recording.tensors.push_back(*tensor);
    if (const auto* param = std::get_if<ParamRecord>(&body)) recording.parameters.push_back(*param);
  }
  if (reader->truncation()) return fail(ErrorCode::unreadable, *reader->truncation());
  return recording;
}

}  // namespace zeroproof
