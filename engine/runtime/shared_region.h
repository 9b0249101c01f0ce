#pragma once

#include <cstddef>
#include <string>

namespace zeroproof {

// Memory that processes of one user on one machine share. It has no name in a file system: who
// knows its place opens it as long as its maker lives, and a killed process leaves no file.
class SharedRegion {
 public:
  // Of zeros. Throws RuntimeFault.
  explicit SharedRegion(std::size_t bytes);
  // What another process made, with place(). Throws RuntimeFault, also where the place holds fewer
  // bytes or is another user's.
  SharedRegion(const std::string& place, std::size_t bytes);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // For other processes: where the maker's file is.
  std::string place() const;

 private:
  void map();

  std::size_t bytes_;
  int file_;
  std::byte* data_ = nullptr;
};

}  // namespace zeroproof
