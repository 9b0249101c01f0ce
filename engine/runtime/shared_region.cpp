#include "engine/runtime/shared_region.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw RuntimeFault(fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

SharedRegion::SharedRegion(std::size_t bytes)
    : bytes_(bytes), file_(::memfd_create("zeroproof", MFD_CLOEXEC)) {
  if (file_ < 0) refuse("no memory that processes share");
  if (::ftruncate(file_, static_cast<off_t>(bytes)) != 0) {
    ::close(file_);
    refuse(fmt::format("no {} bytes that processes share", bytes));
  }
  map();
}

SharedRegion::SharedRegion(const std::string& place, std::size_t bytes)
    : bytes_(bytes), file_(::open(place.c_str(), O_RDWR | O_CLOEXEC)) {
  if (file_ < 0) refuse("the shared memory of another process, " + place);
  struct stat found = {};
  const bool is_there = ::fstat(file_, &found) == 0 && S_ISREG(found.st_mode);
  if (!is_there || static_cast<std::size_t>(found.st_size) < bytes) {
    ::close(file_);
    throw RuntimeFault(fmt::format("{} is not shared memory of {} bytes", place, bytes));
  }
  map();
}

SharedRegion::~SharedRegion() {
  ::munmap(data_, bytes_);
  ::close(file_);
}

std::string SharedRegion::place() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file_);
}

void SharedRegion::map() {
  void* const data = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (data == MAP_FAILED) {
    ::close(file_);
    refuse(fmt::format("{} bytes of shared memory cannot be mapped", bytes_));
  }
  data_ = static_cast<std::byte*>(data);
}

}  // namespace zeroproof
