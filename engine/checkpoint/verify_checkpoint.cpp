#include "engine/checkpoint/verify_checkpoint.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/stored_files.h"

namespace zeroproof {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 22;

std::string without_path(const std::string& text, const std::string& path) {
  return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
}

class Verifier {
 public:
  Verifier(RangedFileSystem& files, std::string path, std::function<bool()> should_stop)
      : files_(files), should_stop_(std::move(should_stop)) {
    found_.path = std::move(path);
  }

  VerifiedCheckpoint verify() {
    const std::string path = fmt::format("{}/{}", found_.path, kManifestFile);
    const auto text = files_.read(path, kManifestBytesMax);
    if (!text) {
      add_problem(path, "unreadable", text.error().reason);
      return std::move(found_);
    }
    count(*text);
    auto manifest = parse_manifest(*text, path);
    if (!manifest) {
      add_problem(path, "content", without_path(manifest.error().text, path));
      return std::move(found_);
    }
    verify_parts({found_.path, std::move(*manifest)});
    return std::move(found_);
  }

 private:
  void verify_parts(const FoundCheckpoint& checkpoint) {
    const std::vector<std::string> names = part_names(checkpoint.manifest);
    for (std::size_t part = 0; part < names.size() && !found_.is_stopped; ++part)
      verify_part(checkpoint.manifest, names[part], checkpoint.manifest.parts[part], part);
    if (found_.is_stopped || !found_.problems.empty()) return;
    // Every file is as it was written: do the files make up what they should?
    const auto stored = read_stored_parts(files_, checkpoint);
    if (!stored) add_problem(found_.path, "content", stored.error().text);
  }

  void verify_part(const Manifest& manifest, const std::string& name, const FileRecord& record,
                   std::size_t part) {
    const std::string path = found_.path + "/" + name;
    if (!verify_file(path, record)) return;
    const auto text = files_.read(path, record.bytes);
    if (!text) return add_problem(path, "unreadable", text.error().reason);
    const auto below = manifest.data_size > 0 ? files_of_shards(*text, path, manifest, part)
                                              : files_of_tensors(*text, path, manifest, part);
    if (!below) return add_problem(path, "content", without_path(below.error().text, path));
    for (const auto& [file, of] : *below) {
      if (found_.is_stopped) return;
      verify_file(found_.path + "/" + file, of);
    }
  }

  using Records = std::vector<std::pair<std::string, FileRecord>>;

  static Result<Records> files_of_shards(const std::string& text, const std::string& path,
                                         const Manifest& manifest, std::size_t part) {
    const auto shards = parse_shard_part(text, path);
    if (!shards) return tl::unexpected(shards.error());
    const int data = static_cast<int>(part) % manifest.data_size;
    const ParallelRank tensor{static_cast<int>(part) / manifest.data_size, manifest.tensor_size};
    Records records;
    for (std::size_t i = 0; i < shards->blocks.size(); ++i)
      records.emplace_back(block_file(data, tensor, i), shards->blocks[i].file);
    return records;
  }

  static Result<Records> files_of_tensors(const std::string& text, const std::string& path,
                                          const Manifest& manifest, std::size_t part) {
    const auto tensors = parse_part(text, path);
    if (!tensors) return tl::unexpected(tensors.error());
    const ParallelPlace place = places_of(manifest.tensor_size, manifest.expert_size)[part];
    Records records;
    for (const StoredTensor& of : *tensors)
      records.emplace_back(tensor_file(of.parameter, of.key, place), of.file);
    return records;
  }

  // Whether the file is right. Reads no more than the record says, and one piece.
  bool verify_file(const std::string& path, const FileRecord& record) {
    if (!files_.exists(path)) return reject(path, "missing", "it is missing");
    RunningChecksum checksum;
    std::uint64_t bytes = 0;
    for (;;) {
      found_.is_stopped = should_stop_ && should_stop_();
      if (found_.is_stopped) return false;
      const auto piece = files_.read_range(path, bytes, kPieceBytes);
      if (!piece) return reject(path, "unreadable", piece.error().reason);
      checksum.add(*piece);
      bytes += piece->size();
      if (piece->size() < kPieceBytes || bytes > record.bytes) break;
    }
    ++found_.files;
    found_.bytes += bytes;
    if (bytes > record.bytes)
      return reject(path, "size", fmt::format("it has more than its {} bytes", record.bytes));
    if (bytes < record.bytes)
      return reject(path, "size", fmt::format("it has {} of {} bytes", bytes, record.bytes));
    if (checksum.text() != record.checksum)
      return reject(path, "checksum", "its checksum does not match");
    return true;
  }

  bool reject(const std::string& path, std::string kind, std::string text) {
    add_problem(path, std::move(kind), std::move(text));
    return false;
  }

  void count(const std::string& text) {
    ++found_.files;
    found_.bytes += text.size();
  }

  void add_problem(const std::string& path, std::string kind, std::string text) {
    found_.problems.push_back({path, std::move(kind), std::move(text)});
  }

  RangedFileSystem& files_;
  std::function<bool()> should_stop_;
  VerifiedCheckpoint found_;
};

}  // namespace

Result<VerifiedCheckpoint> verify_checkpoint(RangedFileSystem& files, const std::string& folder,
                                             const std::string& tag,
                                             const std::function<bool()>& should_stop) {
  auto path = checkpoint_path(files, folder, tag);
  if (path) return Verifier(files, std::move(*path), should_stop).verify();
  const std::string latest = fmt::format("{}/{}", folder, kLatestFile);
  if (!tag.empty() || !files.exists(latest)) return tl::unexpected(path.error());
  return VerifiedCheckpoint{
      .path = folder, .problems = {{latest, "content", without_path(path.error().text, latest)}}};
}

}  // namespace zeroproof
