"""The operations of management on the files of users and roles. They block; a thread executes them."""

from __future__ import annotations

from dataclasses import replace

from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.users.users import read_security
from atalanta.config.users.users_file import (
    UnknownUser,
    UserExists,
    UserFiles,
    UsersError,
    open_user_files,
    stored_password,
)
from atalanta.kernel.security.user_operation import (
    ADD,
    LIST,
    REMOVE,
    UserAnswer,
    UserOperation,
)


def operate_users(configuration: Configuration, operation: UserOperation) -> UserAnswer:
    """Executes one operation. Errors are answers, with the codes of Artemis (ActiveMQMessageBundle)."""
    if configuration.logins is not None and not configuration.logins.domain:
        return UserAnswer(f"the users are in {configuration.path.name}: change them there")
    try:
        files = open_user_files(configuration.users_folder)
        if operation.kind == LIST:
            return UserAnswer(users=listed(files, operation.user))
        change(files, operation)
        if not configuration.broker.security_enabled:
            return UserAnswer()
        # The rules of this Security are not used. Warnings are logged at a reload.
        security = read_security(replace(configuration, files=[], warnings=[]))
    except UserExists:
        return UserAnswer(f"AMQ229223: User {operation.user} already exists")
    except UnknownUser:
        return UserAnswer(f"AMQ229224: User {operation.user} does not exist")
    except UsersError as error:
        return UserAnswer(str(error))
    except ConfigError as error:
        return UserAnswer(f"the change is written, but the files have problems: {error}")
    return UserAnswer(security=security)


def listed(files: UserFiles, user: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns all users, or the one. An unknown user has no roles."""
    found = {line.name: line.roles for line in files.listed()}
    if user:
        found = {user: found.get(user, ())}
    return tuple(found.items())


def change(files: UserFiles, operation: UserOperation) -> None:
    """Changes the files; the change is durable when the function returns."""
    if operation.kind == REMOVE:
        files.remove(operation.user)
        return
    stored = None
    if operation.password is not None:
        stored = stored_password(operation.password, operation.plain)
    if operation.kind == ADD:
        files.add(operation.user, stored or "", operation.roles or ())
    else:
        files.reset(operation.user, stored, operation.roles)
