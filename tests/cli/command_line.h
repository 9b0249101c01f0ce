#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/read_file.h"

namespace zeroproof::cli_test {

struct CommandResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A folder of its own for one test, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "zp-cli-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// Runs a line of shell, stdin empty.
inline CommandResult run_shell(const std::string& line) {
  const ScratchFolder scratch;
  const std::string command =
      "{ " + line + "\n} </dev/null >" + (scratch / "out") + " 2>" + (scratch / "err");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(scratch / "out"),
          read_file(scratch / "err")};
}

// Runs a line of shell in this folder, with `binary` as zeroproof.
inline CommandResult run_shell_in(const ScratchFolder& folder, const std::string& line,
                                  const std::string& binary = ZP_BINARY) {
  return run_shell("cd " + (folder / "") + " && ln -sf " + binary +
                   " zeroproof && PATH=" + (folder / "") + ":$PATH && " + line);
}

// Runs the command under test with these arguments, as a shell reads them.
inline CommandResult zeroproof(const std::string& arguments) {
  return run_shell(ZP_BINARY " " + arguments);
}

inline std::string bundled(const std::string& name) {
  return ZP_SOURCE_DIR "/tests/traces/" + name;
}

inline std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace zeroproof::cli_test
