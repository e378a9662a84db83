#include "cli/config_file.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

// toml++ 3.3 doesn't detect -std=c++20 by itself if extensions are off.
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace stela::tool {
namespace {

constexpr std::size_t largest_config = std::size_t{1024} * 1024;

/// True for /dev/null under any name.
bool is_null_device(const struct stat& file) {
  return S_ISCHR(file.st_mode) && file.st_rdev == makedev(1, 3);
}

/// The opened file, whatever its name refers to by now.
class OpenConfig {
 public:
  explicit OpenConfig(const std::string& path)
      : name_{"the configuration file " + in_one_line(path)},
        file_{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)} {
    if (file_ < 0 || fstat(file_, &facts_) != 0) throw Exit{not_found, name_ + " can't be read"};
  }
  ~OpenConfig() { close(file_); }
  OpenConfig(const OpenConfig&) = delete;
  OpenConfig& operator=(const OpenConfig&) = delete;

  void require_trust() const;
  std::string read() const;

 private:
  [[noreturn]] void refuse(const std::string& why, const std::string& advice) const {
    throw Exit{usage, name_ + ' ' + why + ", and it says where secrets are sent; " + advice};
  }

  std::string name_;
  int file_;
  struct stat facts_ {};
};

/// The writer of the file decides which files are sent to whom, so it must be trusted.
void OpenConfig::require_trust() const {
  // Others may write to /dev/null, but nothing can be read from it.
  if (is_null_device(facts_)) return;
  if (!S_ISREG(facts_.st_mode)) {
    throw Exit{not_found, name_ + " can't be read: it is " +
                              (S_ISDIR(facts_.st_mode) ? "a folder" : "no regular file")};
  }
  const uid_t user = geteuid();
  const bool is_own = facts_.st_uid == user;
  const std::string copy =
      "if it is right, name a copy of your own with --config; '--config /dev/null' does without";
  if (!is_own && facts_.st_uid != 0) {
    refuse("belongs to another user (uid " + std::to_string(facts_.st_uid) + ')', copy);
  }
  if ((facts_.st_mode & (S_IWGRP | S_IWOTH)) == 0) return;
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(facts_.st_mode & 07777U));
  refuse(std::string{"can be written by others (mode "} + mode.data() + ')',
         is_own ? "if it is right, 'chmod go-w' makes it safe" : copy);
}

std::string OpenConfig::read() const {
  std::string text;
  std::array<char, 16 * 1024> part;
  for (;;) {
    const ssize_t size = ::read(file_, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw Exit{not_found, name_ + " can't be read"};
    if (size == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(size));
    if (text.size() > largest_config) {
      throw Exit{usage, name_ + " is larger than 1 MiB; is it the right one?"};
    }
  }
}

std::string written(const toml::node& node, const std::string& where) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) {
    std::string text;
    json::append_double(text, number->get());
    return text;
  }
  throw Misuse{where + " is neither a text nor a number nor true or false"};
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& path,
             std::vector<ConfigEntry>& entries) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string{name.str()};
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, key + ".", path, entries);
      continue;
    }
    const int line = static_cast<int>(node.source().begin.line);
    const std::string where = path + ":" + std::to_string(line) + ": " + in_one_line(key);
    entries.push_back({key, written(node, where), line});
  }
}

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& path) {
  const OpenConfig file{path};
  file.require_trust();
  const std::string text = file.read();
  std::vector<ConfigEntry> entries;
  try {
    flatten(toml::parse(text, path), {}, path, entries);
  } catch (const toml::parse_error& e) {
    throw Misuse{path + ":" + std::to_string(e.source().begin.line) + ": " +
                 in_one_line(e.description())};
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return entries;
}

}  // namespace stela::tool
