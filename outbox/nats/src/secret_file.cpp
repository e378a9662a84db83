#include "secret_file.hpp"

#include <stela/framework/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace stela::nats {
namespace {

constexpr int largest_secret = 64 * 1024;

bool others_may_read(const struct stat& file) {
  return (file.st_mode & (file.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO)) != 0;
}

std::string octal_mode(const struct stat& file) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(file.st_mode & 07777U));
  return text.data();
}

/// The command that makes it a secret of this user.
std::string remedy_for(const struct stat& file, const std::string& path) {
  const uid_t user = geteuid();
  if (user == 0 || file.st_uid == user) return "chmod 600 " + path;
  return "chown " + std::to_string(user) + ' ' + path + " && chmod 600 " + path + ", as root";
}

/// Empty if the file is acceptable.
std::string problem_of(const struct stat& file, const std::string& path) {
  if (!S_ISREG(file.st_mode)) return path + " isn't a regular file";
  if (file.st_size > largest_secret) return "the file " + path + " is larger than 64 KiB";
  if (!others_may_read(file)) return {};
  return "others can read the file " + path + " (mode " + octal_mode(file) +
         "); a secret has the mode 0600, or 0640 if root owns it: " + remedy_for(file, path);
}

}  // namespace

SecretFile::SecretFile(std::string_view option, const std::string& path)
    : option_{option},
      path_{path},
      // Non-blocking, because opening a pipe would wait for its writer.
      file_{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)} {
  struct stat file {};
  if (file_ < 0 || fstat(file_, &file) != 0) {
    throw UsageError{option_ + ": the file " + path_ + " can't be read"};
  }
  const std::string problem = problem_of(file, path_);
  if (problem.empty()) return;
  close(file_);
  throw UsageError{option_ + ": " + problem};
}

SecretFile::~SecretFile() {
  close(file_);
}

std::string SecretFile::read() const {
  std::string secret(largest_secret, '\0');
  std::size_t size = 0;
  while (size < secret.size()) {
    const ssize_t more = ::read(file_, secret.data() + size, secret.size() - size);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    size += static_cast<std::size_t>(more);
  }
  secret.resize(size);
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty() || secret.find('\0') != std::string::npos) {
    throw UsageError{option_ + ": the file " + path_ + " holds no secret"};
  }
  return secret;
}

}  // namespace stela::nats
