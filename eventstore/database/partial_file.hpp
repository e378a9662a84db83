// A new file that others see only once it is whole.
#pragma once

#include <stela/eventstore/export.hpp>

#include <sys/types.h>

#include <string>
#include <string_view>

namespace stela::database {

/// Written beside its target, under a name that nobody else has or foresees, and removed unless it
/// is published. Errors are StoreFull and StoreFailed, which name the file.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT PartialFile {
 public:
  /// `mode` is that of open(2), under the umask.
  explicit PartialFile(std::string target, mode_t mode = 0600);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  int descriptor() const noexcept { return file_; }
  void write(std::string_view text) const;

  /// Lets those read and write it who may read and write `original`, and nobody else: where this
  /// user can't give it the group of `original`, this user alone.
  void take_rights_of(const std::string& original) const;

  /// Syncs it and gives it its target's name. False if something has that name.
  [[nodiscard]] bool publish();
  /// The same in the place of what has that name; a link isn't followed.
  void replace();

 private:
  void sync() const;
  bool rename_if_free() const;
  void sync_folder() const;

  std::string target_;
  std::string path_;
  int file_;
};

}  // namespace stela::database
