#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "engine/runtime/process/file_store.h"
#include "engine/runtime/process/tcp_store.h"

namespace zeroproof {

inline const StoreToken kTestToken{.text = "the token of a test"};

// Opens the stores of one job, rank 0 first, either in a folder or on a free port of the loopback.
class StoreMaker {
 public:
  enum class Kind { file, tcp };
  explicit StoreMaker(Kind kind) : kind_(kind) {
    std::string name = ::testing::TempDir() + "zp-store-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~StoreMaker() { std::filesystem::remove_all(folder_); }
  StoreMaker(const StoreMaker&) = delete;
  StoreMaker& operator=(const StoreMaker&) = delete;

  Result<std::unique_ptr<Store>> try_open(const StoreMember& member, int patience_ms = 60'000) {
    const std::chrono::milliseconds patience(patience_ms);
    if (kind_ == Kind::file) return FileStore::open(folder_, member, patience);
    auto store =
        TcpStore::open({"127.0.0.1", member.rank == 0 ? 0 : port_, kTestToken}, member, patience);
    if (!store) return tl::unexpected(store.error());
    if (member.rank == 0) port_ = (*store)->port();
    return std::move(*store);
  }

  std::unique_ptr<Store> open(int rank, int size) {
    auto store = try_open({rank, size, "run"});
    EXPECT_TRUE(store) << store.error().text;
    return std::move(store.value());
  }

  std::string folder() const { return folder_; }

 private:
  Kind kind_;
  std::string folder_;
  int port_ = 1;  // a port without a listener
};

}  // namespace zeroproof
