#include "props/conform/recording.h"

#include <variant>

#include "sim/trace/order_token.h"
#include "sim/trace/reader.h"

namespace zeroproof {

void RecordingSink::on_event(const HookEvent& event) {
  if (event.kind == EventKind::node_exec)
    recording_.executed_nodes.emplace_back(names_.text(event.name));
  std::string token;
  if (append_order_token(event, names_, TokenDetail::order, token))
    recording_.tokens.push_back(std::move(token));
}

std::optional<std::string> recorded_version(const HeaderRecord& header, std::string_view package) {
  for (const auto& [key, value] : header.producer)
    if (key == package) return value;
  return std::nullopt;
}

Result<TorchRelease> recorded_torch(const HeaderRecord& header) {
  const auto text = recorded_version(header, "torch");
  return text ? TorchRelease::parse(*text) : TorchRelease();
}

Result<Recording> read_recording(const std::string& path) {
  NameTable names;
  auto reader = TraceReader::open(path, names);
  if (!reader) return tl::unexpected(reader.error());
  Recording recording;
  recording.header = reader->header();
  const auto torch = recorded_torch(recording.header);
  if (!torch) return fail(ErrorCode::unreadable, path + ": " + torch.error().text);
  recording.torch = *torch;
  RecordingSink sink(recording, names);
  while (true) {
    const auto record = reader->next();
    if (!record) return tl::unexpected(record.error());
    if (*record == nullptr) break;
    if (const HookEvent* event = (*record)->event()) sink.on_event(*event);
    if (const auto* tensor = std::get_if<TensorRecord>(&(*record)->body))
      recording.tensors[{tensor->role, tensor->name}] = *tensor;
  }
  if (reader->truncation()) return fail(ErrorCode::unreadable, *reader->truncation());
  return recording;
}

}  // namespace zeroproof
