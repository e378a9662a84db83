-- Read models belong to the owner of Stela's tables, and each is shared when it is made. grants.sql shares
-- what is there with roles that are new.
DROP FUNCTION stela.share_read_models(text);
