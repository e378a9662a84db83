#include "database/sqlite/open_database.hpp"

#include <stela/framework/error.hpp>

#include <pthread.h>

#include <algorithm>
#include <mutex>

namespace stela::sqlite {

/// The databases that this process has open, and copies of its parents' connections. Global to the
/// process, as SQLite's own records are.
class OpenDatabases {
 public:
  using Entry = OpenDatabase::Entry;
  using Place = std::list<Entry>::iterator;

  static OpenDatabases& of_process() {
    // Never destroyed: a store may be closed after the end of main.
    static OpenDatabases* const databases = new OpenDatabases;
    return *databases;
  }

  Place add(const std::string& path) {
    const std::lock_guard lock{mutex_};
    const bool is_copied = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.path == path && !entry.owner.is_this();
    });
    if (is_copied) {
      throw UsageError{"'" + path +
                       "' was open when this process was forked, and a copy of its parent's store "
                       "is left here, without its locks; destroy the copy first, or have the "
                       "parent open it after the fork"};
    }
    return entries_.insert(entries_.end(), Entry{path, {}});
  }
  void remove(Place place) noexcept {
    const std::lock_guard lock{mutex_};
    entries_.erase(place);
  }

 private:
  OpenDatabases() {
    // A child must find the list consistent and its mutex free.
    pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); },
                   [] { of_process().mutex_.unlock(); });
  }

  std::mutex mutex_;
  /// Guarded by mutex_.
  std::list<Entry> entries_;
};

OpenDatabase::OpenDatabase(const std::string& path) {
  if (!path.empty()) entry_ = OpenDatabases::of_process().add(path);
}

OpenDatabase::~OpenDatabase() {
  if (entry_) OpenDatabases::of_process().remove(*entry_);
}

}  // namespace stela::sqlite
