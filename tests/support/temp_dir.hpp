// A folder of its own for each test.
#pragma once

#include <filesystem>
#include <string>

namespace stela::test {

/// Created empty, and removed with its contents.
class TempDir {
 public:
  TempDir();
  /// In a memory file system if there is one: for tests that open hundreds of databases and aren't
  /// about the disk, whose syncs would take most of their time.
  static TempDir in_memory();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  explicit TempDir(const std::filesystem::path& parent);

  std::filesystem::path path_;
};

}  // namespace stela::test
