// A new file that others see only once it is complete.
#pragma once

#include <stela/eventstore/export.hpp>

#include <sys/types.h>

#include <string>
#include <string_view>

namespace stela::database {

/// Written beside its target, under a unique, unpredictable name, and removed unless it is
/// published. Errors are StoreFull and StoreFailed, which name the file.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT PartialFile {
 public:
  /// `mode` is as in open(2), under the umask.
  explicit PartialFile(std::string target, mode_t mode = 0600);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  int descriptor() const noexcept { return file_; }
  void write(std::string_view text) const;

  /// Gives it the read and write permissions of `original`; if this user can't set its group, only
  /// this user gets access.
  void take_rights_of(const std::string& original) const;

  /// Syncs the file and renames it to its target. False if the target exists.
  [[nodiscard]] bool publish();
  /// The same, but replaces an existing target; a link isn't followed.
  void replace();

 private:
  void sync() const;
  bool rename_if_free() const;

  std::string target_;
  std::string path_;
  int file_;
};

/// Makes it durable that the file has this name, or has it no longer.
void sync_folder_of(const std::string& path);

}  // namespace stela::database
