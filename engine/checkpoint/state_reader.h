#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/stored_files.h"
#include "engine/files/ranged_file_system.h"
#include "zeroproof/model/dtype.h"

namespace zeroproof {

// A state of a checkpoint, read a range at a time from the files of its pieces.
class StateReader {
 public:
  // Reads the headers of the files. `files` must outlive it. Error: names the file.
  static Result<StateReader> open(RangedFileSystem& files, const std::string& checkpoint,
                                  const StoredState& state);

  const Shape& sizes() const { return sizes_; }
  // That of all pieces; float64 if they differ, which holds every value.
  DType dtype() const { return dtype_; }
  // The elements [begin, begin + elements) as bytes of a tensor file of dtype().
  Result<std::string> read(std::int64_t begin, std::int64_t elements) const;

 private:
  struct Piece {
    std::string path;
    std::uint64_t data_begin = 0;  // of the elements' bytes in the file
    DType dtype = DType::float32;
    std::int64_t begin = 0;
    std::int64_t elements = 0;
  };
  Result<void> add(const std::string& path, const StoredPiece& of, const std::string& name);
  Result<std::string> read_piece(const Piece& of, std::int64_t from, std::int64_t to) const;

  RangedFileSystem* files_ = nullptr;
  Shape sizes_;
  DType dtype_ = DType::float32;
  std::vector<Piece> pieces_;
};

}  // namespace zeroproof
