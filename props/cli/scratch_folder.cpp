#include "props/cli/scratch_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "model/check.h"

namespace zeroproof {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder()
    : path_((fs::temp_directory_path() / "zeroproof-show-XXXXXX").string()) {
  ZP_CHECK(mkdtemp(path_.data()) != nullptr, "no folder for temporary files");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace zeroproof
