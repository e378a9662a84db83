// A disk that is soon full.
#pragma once

#include "support/temp_dir.hpp"

#include <cstddef>
#include <string>

namespace stela::test {

/// A tmpfs of a few megabytes of its own, mounted for as long as this lives; as another user in a
/// namespace of that user's, where that is allowed. Where neither is, a limit to the size of files
/// takes its place, which fails writes for the same reason: no space.
class SmallDisk {
 public:
  explicit SmallDisk(std::size_t megabytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// False if the limit stands in: it holds for this process and those that it forks from now on.
  bool is_mounted() const noexcept { return is_mounted_; }
  std::string file(const std::string& name) const { return dir_.file(name); }
  /// Leaves at most so many bytes to the files.
  void fill_up(std::size_t bytes_left);
  /// As if somebody had tidied up.
  void make_room();
  /// From now on nobody writes to it: it is mounted so, or its permissions say so.
  void make_read_only();

 private:
  TempDir dir_;
  bool is_mounted_ = false;
};

}  // namespace stela::test
