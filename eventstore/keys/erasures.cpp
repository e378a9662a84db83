#include "erasures.hpp"

#include <stela/framework/error.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace stela::keys {
namespace {

constexpr std::string_view tag = "stela-erasure-1";
constexpr std::size_t most_problems = 10;

struct Record {
  std::string_view key_store;
  std::int64_t number = 0;
  KeyId previous;
  std::vector<KeyId> ids;
  /// The part that the code covers.
  std::string_view text;
  KeyId code;
};

/// Removes and returns the text up to `separator`, or all of it.
std::string_view take_word(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

std::optional<Record> parse_record(std::string_view line) {
  const std::size_t end = line.rfind(' ');
  if (end == std::string_view::npos) return std::nullopt;
  Record record;
  record.text = line.substr(0, end);
  std::string_view rest = record.text;
  if (take_word(rest, ' ') != tag) return std::nullopt;
  const std::string_view number = take_word(rest, ' ');
  std::from_chars(number.data(), number.data() + number.size(), record.number);
  record.key_store = take_word(rest, ' ');
  take_word(rest, ' ');  // the time is only for people
  const auto previous = KeyId::parse(take_word(rest, ' '));
  const auto code = KeyId::parse(line.substr(end + 1));
  if (!previous || !code) return std::nullopt;
  record.previous = *previous;
  record.code = *code;
  while (!rest.empty()) {
    const auto id = KeyId::parse(take_word(rest, ','));
    if (!id) return std::nullopt;
    record.ids.push_back(*id);
  }
  return record;
}

[[noreturn]] void fail_erasures(const std::string& path, const char* doing) {
  const int error = errno;
  const std::string text =
      std::string{doing} + " the file of erasures '" + path + "' failed: " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    throw StoreFull{text + "; no key was destroyed; free some space and try again"};
  }
  throw StoreFailed{text + "; no key was destroyed"};
}

}  // namespace

class Erasures::File {
 public:
  File(const std::string& path, int flags)
      : path_{path}, descriptor_{::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0600)} {
    if (descriptor_ < 0 && (errno != ENOENT || (flags & O_CREAT) != 0)) fail("opening");
    struct stat status {};
    if (is_open() && (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode))) {
      ::close(descriptor_);
      throw StoreFailed{"'" + path + "' can't be the file of erasures: it isn't a file; no key " +
                        "was destroyed"};
    }
  }
  ~File() {
    if (is_open()) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const noexcept { return descriptor_ >= 0; }

  /// Holds the lock for as long as the file is open.
  void lock() const {
    while (::flock(descriptor_, LOCK_EX) != 0) {
      if (errno != EINTR) fail("locking");
    }
  }
  std::size_t size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail("looking at");
    return static_cast<std::size_t>(status.st_size);
  }
  std::string read(std::size_t from) const {
    std::string text(size() - std::min(from, size()), '\0');
    std::size_t at = 0;
    while (at < text.size()) {
      const ssize_t got =
          ::pread(descriptor_, text.data() + at, text.size() - at, static_cast<off_t>(from + at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("reading");
      if (got == 0) break;
      at += static_cast<std::size_t>(got);
    }
    text.resize(at);
    return text;
  }
  /// Removes a record that a writer left unfinished after `whole` bytes, or ends its line where
  /// removal is forbidden.
  void mend(std::size_t whole) const {
    if (size() <= whole || ::ftruncate(descriptor_, static_cast<off_t>(whole)) == 0) return;
    append("\n");
  }
  void append(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t size = ::write(descriptor_, text.data(), text.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) fail("writing to");
      text.remove_prefix(static_cast<std::size_t>(size));
    }
  }
  /// Syncs the file and its name.
  void sync() const {
    if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("syncing");
    const std::filesystem::path parent = std::filesystem::path{path_}.parent_path();
    const std::string folder = parent.empty() ? "." : parent.string();
    const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool is_synced = opened >= 0 && (::fsync(opened) == 0 || errno == EINVAL);
    if (opened >= 0) ::close(opened);
    if (!is_synced) fail("syncing the folder of");
  }

 private:
  [[noreturn]] void fail(const char* doing) const { fail_erasures(path_, doing); }

  const std::string& path_;
  int descriptor_;
};

Erasures::Erasures(std::string path, const Uuid& key_store, Secret key)
    : path_{std::move(path)}, key_store_{key_store.to_string()}, key_{std::move(key)} {
  const File file{path_, O_RDONLY};
  if (file.is_open()) {
    read(file);
  } else if (const auto folder = std::filesystem::path{path_}.parent_path();
             !folder.empty() && !std::filesystem::exists(folder)) {
    complain("there is no folder '" + folder.string() + "'; is its disk mounted?");
  }
  if (is_foreign(file)) {
    complain("it isn't a file of erasures; name another one");
  } else if (file.is_open() && file.size() > size_) {
    complain(
        "its last line is unfinished: a process ended while it wrote it; the next erasure "
        "mends that");
  }
}

void Erasures::complain(const std::string& what) {
  if (problems_.size() > most_problems) return;
  const bool is_last = problems_.size() == most_problems;
  problems_.push_back("'" + path_ + "': " + (is_last ? "and more is wrong with it" : what));
}

void Erasures::read(const File& file) {
  if (file.size() < size_) {
    complain("it is shorter than it was");
    size_ = 0;
    lines_ = 0;
    has_records_ = false;
  }
  const std::string text = file.read(size_);
  std::string_view rest{text};
  for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos;) {
    ++lines_;
    has_records_ = has_records_ || rest.starts_with(tag);
    if (end > 0) take(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    size_ += end + 1;
  }
  has_records_ = has_records_ || (!rest.empty() && tag.starts_with(rest.substr(0, tag.size())));
}

/// Its last line would be cut off, and records appended: not even a master key would survive that.
bool Erasures::is_foreign(const File& file) const {
  return file.is_open() && file.size() > 0 && !has_records_;
}

void Erasures::take(std::string_view line) {
  const auto record = parse_record(line);
  if (record && record->key_store != key_store_) return;
  if (!record || code_of(key_, record->text) != record->code.bytes) {
    return complain("line " + std::to_string(lines_) +
                    " was changed, or isn't one of Stela's; it is left out");
  }
  follow(record->number, record->previous);
  last_code_ = record->code;
  ids_.insert(record->ids.begin(), record->ids.end());
}

/// Takes a genuine record. Earlier ones may be missing.
void Erasures::follow(std::int64_t number, const KeyId& previous) {
  if (number <= number_) {
    complain("line " + std::to_string(lines_) + " repeats erasure " + std::to_string(number));
  } else if (number != number_ + 1 || (previous != last_code_ && number > 1)) {
    complain("before line " + std::to_string(lines_) + " erasures are missing or were changed: " +
             std::to_string(number) + " follows " + std::to_string(number_));
  }
  number_ = std::max(number_, number);
}

void Erasures::expect(std::int64_t number) {
  const std::lock_guard lock{mutex_};
  if (number <= number_) return;
  const std::string actual = lines_ == 0 ? "it is missing or empty"
                                         : "it ends with " + std::to_string(number_) +
                                               ": it is an older copy, or another file";
  complain("erasures up to " + std::to_string(number) + " were written to it, and " + actual +
           "; put the right one back; if both have records, join them, the older one first");
  number_ = number;
}

std::int64_t Erasures::number() const {
  const std::lock_guard lock{mutex_};
  return number_;
}

std::vector<KeyId> Erasures::ids() const {
  const std::lock_guard lock{mutex_};
  return {ids_.begin(), ids_.end()};
}

bool Erasures::contains(const KeyId& id) const {
  const std::lock_guard lock{mutex_};
  return ids_.contains(id);
}

std::vector<std::string> Erasures::problems() const {
  const std::lock_guard lock{mutex_};
  return problems_;
}

std::string Erasures::record(std::span<const KeyId> ids, Timestamp now) const {
  std::string text{tag};
  text.append(" ").append(std::to_string(number_ + 1)).append(" ").append(key_store_);
  text.append(" ").append(to_string(now)).append(" ").append(last_code_.to_string());
  char separator = ' ';
  for (const KeyId& id : ids) {
    text.append(1, separator).append(id.to_string());
    separator = ',';
  }
  const KeyId code{code_of(key_, text)};
  return text.append(" ").append(code.to_string()).append("\n");
}

void Erasures::add(std::span<const KeyId> ids, Timestamp now) {
  const std::lock_guard lock{mutex_};
  const File file{path_, O_RDWR | O_APPEND | O_CREAT};
  file.lock();
  read(file);
  std::vector<KeyId> missing;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(missing),
               [&](const KeyId& id) { return !ids_.contains(id); });
  if (missing.empty()) return;
  if (is_foreign(file)) {
    throw StoreFailed{"'" + path_ + "' isn't a file of erasures, and is left as it is; name " +
                      "another one, or one that doesn't exist yet; no key was destroyed"};
  }
  file.mend(size_);
  const std::string text = record(missing, now);
  file.append(text);
  file.sync();
  read(file);
}

bool has_only_records_of(const Uuid& key_store, const std::string& path) {
  std::ifstream file{path};
  if (!file) return false;
  const std::string wanted = key_store.to_string();
  for (std::string line; std::getline(file, line);) {
    const auto record = parse_record(line);
    if (!record || record->key_store != wanted) return false;
  }
  return true;
}

}  // namespace stela::keys
