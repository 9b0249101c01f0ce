#include "sim/trace/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <vector>

#include "model/check.h"

namespace zeroproof {
namespace {

constexpr std::size_t kInputBytes = std::size_t{64} * 1024;
constexpr int kGzipWindow = 15 + 16;  // zlib: largest window, gzip framing

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> compressed)
      : compressed_(std::move(compressed)), input_(kInputBytes) {
    ZP_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK, "zlib: no memory");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  tl::expected<std::size_t, std::string> read(std::span<char> out) override {
    // A few compressed bytes may become megabytes, so the sources below are asked too seldom.
    if (is_read_stopped()) return tl::unexpected(std::string("reading was interrupted"));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30));
    const auto room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0) {
        const auto filled = fill();
        if (!filled) return tl::unexpected(filled.error());
        if (!*filled) break;
      }
      if (is_between_members_ && inflateReset(&stream_) == Z_OK) is_between_members_ = false;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        is_between_members_ = true;
      } else if (status != Z_OK) {
        if (stream_.avail_out != room) break;  // hand out what is good; the next call fails again
        return tl::unexpected(damage());
      }
    }
    return room - stream_.avail_out;
  }

  bool is_cut_short() const override { return !is_between_members_; }

 private:
  tl::expected<bool, std::string> fill() {
    const auto got = compressed_->read(input_);
    if (!got) return tl::unexpected(got.error());
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(*got);
    return *got != 0;
  }

  std::string damage() const {
    const char* why = stream_.msg == nullptr ? "unexpected data" : stream_.msg;
    return fmt::format("damaged gzip data ({}); copy or record the file again", why);
  }

  std::unique_ptr<ByteSource> compressed_;
  std::vector<char> input_;
  z_stream stream_ = {};
  bool is_between_members_ = false;
};

}  // namespace

bool starts_like_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

std::unique_ptr<ByteSource> make_gzip_source(std::unique_ptr<ByteSource> compressed) {
  return std::make_unique<GzipSource>(std::move(compressed));
}

struct GzipInflater::State {
  z_stream stream = {};
  bool is_between_members = false;

  bool run(std::string_view bytes, std::string& out) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      char chunk[16 * 1024];
      stream.next_out = reinterpret_cast<Bytef*>(chunk);
      stream.avail_out = sizeof chunk;
      if (is_between_members && inflateReset(&stream) == Z_OK) is_between_members = false;
      const int status = inflate(&stream, Z_NO_FLUSH);
      out.append(chunk, sizeof chunk - stream.avail_out);
      is_between_members = status == Z_STREAM_END;
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) return false;
    } while (stream.avail_in > 0 || stream.avail_out == 0);
    return true;
  }
};

GzipInflater::GzipInflater() : state_(std::make_unique<State>()) {
  ZP_CHECK(inflateInit2(&state_->stream, kGzipWindow) == Z_OK, "zlib: no memory");
}

GzipInflater::~GzipInflater() {
  inflateEnd(&state_->stream);
}

bool GzipInflater::add(std::string_view bytes, std::string& out) {
  return bytes.empty() || state_->run(bytes, out);
}

struct GzipCompressor::State {
  z_stream stream = {};

  void run(std::string_view bytes, int flush, std::string& out) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      char chunk[16 * 1024];
      stream.next_out = reinterpret_cast<Bytef*>(chunk);
      stream.avail_out = sizeof chunk;
      ZP_CHECK(deflate(&stream, flush) != Z_STREAM_ERROR, "zlib: inconsistent state");
      out.append(chunk, sizeof chunk - stream.avail_out);
    } while (stream.avail_out == 0);
  }
};

GzipCompressor::GzipCompressor() : state_(std::make_unique<State>()) {
  constexpr int kMemoryLevel = 8;
  const int status = deflateInit2(&state_->stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow,
                                  kMemoryLevel, Z_DEFAULT_STRATEGY);
  ZP_CHECK(status == Z_OK, "zlib: no memory");
}

GzipCompressor::~GzipCompressor() {
  deflateEnd(&state_->stream);
}

void GzipCompressor::add(std::string_view bytes, std::string& out) {
  state_->run(bytes, Z_NO_FLUSH, out);
}

void GzipCompressor::finish(std::string& out) {
  state_->run({}, Z_FINISH, out);
}

}  // namespace zeroproof
