#include "engine/runtime/process/store_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace zeroproof {
namespace {

constexpr std::size_t kShortestToken = 16;
constexpr std::size_t kLongestToken = 1024;

class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int number() const { return descriptor_; }

 private:
  int descriptor_;
};

tl::unexpected<Error> bad_token(const std::string& path, std::string_view reason) {
  return fail(ErrorCode::usage,
              fmt::format("the store's token {}: {}; set ZEROPROOF_STORE_TOKEN on all processes, "
                          "or give all --store-token FILE",
                          path, reason));
}

Result<std::string> checked(std::string token, const std::string& place) {
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.size() >= kShortestToken && token.size() <= kLongestToken) return token;
  return bad_token(place, fmt::format("has {} bytes: give {} to {}, as openssl rand -hex 16 does",
                                      token.size(), kShortestToken, kLongestToken));
}

Result<std::string> read_file_of_user(const std::string& path) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.number() < 0) return bad_token(path, std::strerror(errno));
  struct stat status = {};
  if (::fstat(file.number(), &status) != 0) return bad_token(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return bad_token(path, "is no file");
  if (status.st_uid != ::getuid()) return bad_token(path, "belongs to another user");
  if ((status.st_mode & 077U) != 0) return bad_token(path, "can be read by others: chmod 600");
  std::array<char, kLongestToken + 2> bytes{};
  const ssize_t count = ::read(file.number(), bytes.data(), bytes.size());
  if (count < 0) return bad_token(path, std::strerror(errno));
  return checked(std::string(bytes.data(), static_cast<std::size_t>(count)), path);
}

Result<std::string> random_token() {
  std::array<unsigned char, kShortestToken> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return bad_token("of this run", std::strerror(errno));
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// Under another name first: a reader finds the whole token or none.
Result<std::string> make_file(const std::string& path) {
  auto token = random_token();
  if (!token) return token;
  const std::string fresh = fmt::format("{}.{}", path, ::getpid());
  ::unlink(fresh.c_str());
  const OpenFile file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const std::string_view text = *token;
  const bool is_written =
      file.number() >= 0 &&
      ::write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::rename(fresh.c_str(), path.c_str()) == 0;
  if (!is_written) return bad_token(path, std::strerror(errno));
  return token;
}

}  // namespace

Result<std::string> offer_token(const StoreToken& token) {
  return token.is_made ? make_file(token.file) : read_token(token);
}

Result<std::string> read_token(const StoreToken& token) {
  if (token.text.empty()) return read_file_of_user(token.file);
  return checked(token.text, "in ZEROPROOF_STORE_TOKEN");
}

bool is_same_token(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0U : 1U;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

}  // namespace zeroproof
