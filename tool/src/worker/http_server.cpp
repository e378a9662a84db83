// Boost 1.74 needs it before asio.
#include <utility>

#include "cli/arguments.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "worker/http_server.hpp"

#define BOOST_ERROR_CODE_HEADER_ONLY 1
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

namespace stela::tool {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::chrono::seconds slowest{5};
constexpr std::size_t longest_header = 8 * 1024;
constexpr int most_connections = 64;

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

Response answer(const HttpServer::Handler& handler, const Request& request) {
  HttpResponse made;
  const bool is_head = request.method() == http::verb::head;
  if (request.method() != http::verb::get && !is_head) {
    made = {.status = 405, .body = "only GET and HEAD\n"};
  } else {
    const std::string_view target{request.target().data(), request.target().size()};
    try {
      made = handler(target.substr(0, target.find('?')));
    } catch (const std::exception& e) {
      made = {.status = 500, .body = in_one_line(e.what()) + "\n"};
    }
  }
  Response response{static_cast<http::status>(made.status), request.version()};
  response.set(http::field::content_type, made.content_type);
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(false);
  const std::size_t size = made.body.size();
  if (!is_head) response.body() = std::move(made.body);
  response.content_length(size);
  return response;
}

/// One connection: a request, its answer, and the end.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const HttpServer::Handler& handler, int& open)
      : stream_{std::move(socket)}, handler_{handler}, open_{open} {
    ++open_;
    parser_.header_limit(longest_header);
  }
  ~Connection() { --open_; }

  void run() {
    stream_.expires_after(slowest);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->respond();
                     });
  }

 private:
  void respond() {
    response_ = answer(handler_, parser_.get());
    stream_.expires_after(slowest);
    http::async_write(stream_, *response_,
                      [self = shared_from_this()](beast::error_code, std::size_t) {
                        beast::error_code ignored;
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{longest_header};
  http::request_parser<http::empty_body> parser_;
  std::optional<Response> response_;
  const HttpServer::Handler& handler_;
  int& open_;
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpAddress& address, Handler handler) : handler_{std::move(handler)} {
    const std::string where = address.host + ":" + std::to_string(address.port);
    boost::system::error_code error;
    const auto host = asio::ip::make_address(address.host, error);
    if (error) throw Misuse{"'" + in_one_line(address.host) + "' isn't an IP address"};
    const tcp::endpoint endpoint{host, address.port};
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address{true}, error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) throw Exit{failed, "can't listen on " + where + ": " + error.message()};
    accept();
    thread_ = std::jthread{[this] { context_.run(); }};
  }

  ~Impl() { context_.stop(); }

  std::string url() const {
    const tcp::endpoint at = acceptor_.local_endpoint();
    const std::string host = at.address().to_string();
    return "http://" + (at.address().is_v6() ? "[" + host + "]" : host) + ":" +
           std::to_string(at.port());
  }

 private:
  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (!error && open_ < most_connections) {
        std::make_shared<Connection>(std::move(socket), handler_, open_)->run();
      }
      accept();
    });
  }

  const Handler handler_;
  int open_ = 0;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  std::jthread thread_;
};

HttpAddress parse_address(std::string_view text) {
  HttpAddress address;
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    std::string_view host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    address.host = host;
    text.remove_prefix(colon + 1);
  }
  address.port = static_cast<std::uint16_t>(to_integer(text, "the port of metrics", {0, 65'535}));
  return address;
}

HttpServer::HttpServer(const HttpAddress& address, Handler handler)
    : impl_{std::make_unique<Impl>(address, std::move(handler))} {}

HttpServer::~HttpServer() = default;

std::string HttpServer::url() const {
  return impl_->url();
}

HttpResponse metrics_page(std::string text) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = std::move(text)};
}

HttpResponse readiness(const std::vector<std::string>& why_not) {
  if (why_not.empty()) return {.body = "ready\n"};
  HttpResponse response{.status = 503};
  for (const std::string& reason : why_not) response.body += reason + "\n";
  return response;
}

HttpResponse other_page(std::string_view path) {
  if (path == "/healthz") return {.body = "ok\n"};
  return {.status = 404, .body = "there are /metrics, /healthz and /readyz\n"};
}

}  // namespace stela::tool
