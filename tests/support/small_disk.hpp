// A small disk that fills up quickly.
#pragma once

#include "support/temp_dir.hpp"

#include <cstddef>
#include <string>

namespace stela::test {

/// A tmpfs of a few megabytes, mounted while this lives; without root, in a user namespace, where
/// allowed. Where neither is possible, a limit on file sizes replaces it, which fails writes for
/// the same reason: no space.
class SmallDisk {
 public:
  explicit SmallDisk(std::size_t megabytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// False if the limit replaces it. The limit applies to this process and its later children.
  bool is_mounted() const noexcept { return is_mounted_; }
  std::string file(const std::string& name) const { return dir_.file(name); }
  /// Leaves at most this many bytes free.
  void fill_up(std::size_t bytes_left);
  /// Frees space, as if somebody had tidied up.
  void make_room();
  /// Makes it read-only, by remounting or by permissions.
  void make_read_only();

 private:
  TempDir dir_;
  bool is_mounted_ = false;
};

}  // namespace stela::test
